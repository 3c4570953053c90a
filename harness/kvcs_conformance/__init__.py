"""The KVCS conformance and interop harness: cases, evidence, judge and reports."""
