"""What runs inside a worker process: the standard library, one evaluator, nothing of the service."""
