"""Why a llama-server failed, or runs and does not speculate, told from its log.

``diagnose`` takes the lines of a log, ``Examiner`` a log of any length line by line, and
``fixes_for`` turns a Diagnosis into changes of a profile.
"""

from spectui.domain.failures.diagnosis import Diagnosis
from spectui.domain.failures.examine import Examiner, diagnose
from spectui.domain.failures.fixes import fixes_for
from spectui.domain.failures.kinds import Remedy
from spectui.domain.failures.table import CLASSES

__all__ = ["CLASSES", "Diagnosis", "Examiner", "Remedy", "diagnose", "fixes_for"]
