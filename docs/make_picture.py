"""Draw docs/funnel.svg: what `curate demo` prints."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from rich.console import Console

from trajcurate import curate
from trajcurate.curate.funnel_table import funnel_table, weight_table

SAMPLES = Path(__file__).parent.parent / "samples" / "redsearcher"


def main() -> None:
    """Run the main recipe on the samples and draw its funnel."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = curate.run("redsearcher_sft", [SAMPLES], folder, fresh=True).manifest
    console = Console(record=True, width=124, highlight=False, file=io.StringIO())
    console.print(funnel_table(manifest))
    console.print()
    console.print(weight_table(manifest))
    svg = console.export_svg(title="curate demo")
    (Path(__file__).parent / "funnel.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
