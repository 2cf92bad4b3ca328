"""What every message must be like."""

import re


def assert_one_sentence(message: str, words: str) -> None:
    """It says `words`, in one line, without options of the command (but for a command that is quoted whole)."""
    assert words in message, message
    assert "\n" not in message and "--" not in re.sub("`[^`]*`", "", message), message
