"""An evaluator that cannot be imported."""

raise ImportError("no such engine")
