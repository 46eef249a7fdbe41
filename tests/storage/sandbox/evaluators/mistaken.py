"""An evaluator with a mistake."""


def evaluator():
    def evaluate(request):
        raise TypeError(f"cannot evaluate {request}")

    return evaluate
