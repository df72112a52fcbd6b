"""What the agent refuses of a driver, in the log."""


class ProblemLog:
    """Logs each new problem once, and once when it has ended."""

    def __init__(self, kind):
        self._kind, self._known = kind, set()

    async def __call__(self, problems):
        present = {_shown(problem) for problem in problems}
        for shown in sorted(present - self._known):
            self._warn(shown, "the agent reports a problem")
        for shown in sorted(self._known - present):
            self._warn(shown, "a problem has ended")
        self._known = present

    def _warn(self, shown, what):
        error_id, message, where = shown
        self._kind.log.warning("%s: %s: %s%s", error_id, what, message, where)


def _shown(problem):
    # Without the time: an agent that was restarted may know another one.
    fields = (("pool", problem.pool), ("device", problem.device), ("claim", problem.claim_uid))
    where = ", ".join(f"{name} {value}" for name, value in fields if value)
    return problem.error_id, problem.message, f" ({where})" if where else ""
