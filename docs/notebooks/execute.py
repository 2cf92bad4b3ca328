"""python execute.py [--check]: runs the notebooks beside it and stores their outputs; with --check, runs them and stores nothing.

A notebook whose metadata name packages (`needs`) that are not installed is skipped, and said to be.
"""
import json
import pathlib
import sys
import tempfile

import nbformat
from nbclient import NotebookClient

here = pathlib.Path(__file__).parent
for path in sorted(here.glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    needs = notebook.metadata.get("needs", [])
    missing = []
    for name in needs:
        try:
            __import__(name)
        except ImportError:
            missing.append(name)
    if missing:
        print(f"{path.name}: skipped, {', '.join(missing)} is not installed")
        continue
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells ran")
    if "--check" not in sys.argv:
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times of day
        notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}, "needs": needs}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
