"""Every action of the dashboard, once: bindings, footer, palette and help are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Act:
    """One thing a person can do.

    ``action`` is the name of the Dashboard's action, ``keys`` as Textual names them, ``shown`` the
    key as people know it, ``label`` one word for the footer and ``help`` a sentence. ``rank`` says
    who goes first where the footer is too narrow; 0 is never in the footer.
    """

    action: str
    keys: str
    shown: str
    label: str
    title: str
    help: str
    rank: int = 0
    group: str = "View"

    @property
    def binding(self) -> Binding:
        """Textual's binding; its id is the action, so that a keymap can move it."""
        return Binding(
            self.keys,
            self.action,
            self.label,
            show=self.rank > 0,
            key_display=self.shown,
            id=self.action,
            tooltip=self.help,
        )


FIX_KEYS: Final = "fgh"
"""What applies the first, second and third way out of the banner: digits belong to the knobs."""

ACTS: Final = (
    Act(
        "measure",
        "m",
        "m",
        "measure",
        "Measure the pending setting",
        "Restarts the server with the pending setting and sends every prompt;"
        " measures the baseline first where there is none",
        1,
        "Measure",
    ),
    Act(
        "apply",
        "a",
        "a",
        "apply",
        "Apply and measure",
        "The same, from the knobs: what was changed runs, and is measured",
        2,
        "Measure",
    ),
    Act(
        "baseline",
        "b",
        "b",
        "baseline",
        "Measure the baseline",
        "Measures with speculation off, then goes back to the setting before",
        3,
        "Measure",
    ),
    Act(
        "server",
        "s",
        "s",
        "start",
        "Start or stop the server",
        "Starts it with the pending setting, or stops it; what was measured is kept",
        4,
        "Measure",
    ),
    Act(
        "cancel",
        "x",
        "x",
        "cancel",
        "Cancel what is under way",
        "Stops a measurement or a start at once; answered prompts are kept",
        1,
        "Measure",
    ),
    Act(
        "export",
        "e",
        "e",
        "export",
        "Export the tuned profile",
        "Writes a TOML file that reproduces the setting of the answer, with the evidence",
        5,
        "Measure",
    ),
    Act(
        "choose_type",
        "t",
        "t",
        "type",
        "Choose the speculation type",
        "Lists the ways to draft, one or several at once, and why some cannot be used",
        7,
        "Knobs",
    ),
    Act(
        "drafters",
        "r",
        "r",
        "drafters",
        "Choose the drafter",
        "Looks for models on disk: which can draft for the target, and why the others cannot",
        9,
        "Knobs",
    ),
    Act("move(-1)", "up", "up", "", "Knob above", "Chooses the knob above", 0, "Knobs"),
    Act("move(1)", "down", "down", "", "Knob below", "Chooses the knob below", 0, "Knobs"),
    Act(
        "step(-1)",
        "left,minus",
        "left -",
        "",
        "Lower the knob",
        "One step down; digits type a value, enter ends typing",
        0,
        "Knobs",
    ),
    Act(
        "step(1)",
        "right,plus,equals_sign",
        "right +",
        "",
        "Raise the knob",
        "One step up",
        0,
        "Knobs",
    ),
    Act(
        "revert",
        "z",
        "z",
        "undo",
        "Undo what is pending",
        "Sets the knobs back to what is running",
        0,
        "Knobs",
    ),
    Act(
        "checkup",
        "k",
        "k",
        "check",
        "Check the profile",
        "Five questions before a launch: the memory it takes, and what would go wrong",
        6,
        "What is wrong",
    ),
    Act(
        "trouble",
        "w",
        "w",
        "what's wrong",
        "Show what is wrong",
        "Everything that was found about this launch, with every way out",
        2,
        "What is wrong",
    ),
    *(
        Act(
            f"fix({number})",
            key,
            key,
            "",
            f"Apply the {order} way out",
            "Changes the profile as the banner says beside the letter, and starts the server",
            0,
            "What is wrong",
        )
        for number, (key, order) in enumerate(
            zip(FIX_KEYS, ("first", "second", "third"), strict=True)
        )
    ),
    Act(
        "compare",
        "c",
        "c",
        "compare",
        "Compare with another run",
        "Adds another run to the acceptance chart, a different one each time;"
        " enter on a row of the table does the same",
        12,
    ),
    Act(
        "conditional",
        "d",
        "d",
        "cond",
        "Conditional or unconditional acceptance",
        "Unconditional: accepted at this position. Conditional: given that the one before was",
        13,
    ),
    Act(
        "view",
        "v",
        "v",
        "view",
        "Next view",
        "On a small terminal: speed, acceptance or machine in one place",
        8,
    ),
    Act(
        "log",
        "l",
        "l",
        "log",
        "Show the server's log",
        "The end of the log, followed as it grows",
        10,
    ),
    Act("help", "question_mark,f1", "?", "help", "Help", "What the keys and signs mean", 3),
    Act("quit", "q", "q", "quit", "Quit", "Asks first while a measurement is under way", 1),
)
