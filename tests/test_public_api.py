"""The public interface: its names, what the pages import of it, and the examples in docstrings."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import sharewell
import sharewell_lab
from sharewell import errors
from tests.pages import DOCS, README, fenced_blocks, read

ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SharewellError)
}

#: The public modules and all their names, beside the errors.
PUBLIC = {
    "sharewell": """
        AnalystList Ask AsyncCuratorSession AsyncSession Binned Block Boolean Budget BudgetStatus
        Category Certificate CertificateReport CloseRound ClosedRound Collective Curator
        CuratorSession DataVector DatasetInfo Date Domain EventPage Granted Integer Join Leave
        LinearQuery Location Measure
        MemoryLedger NoNoise Number PersonView Quote Result Session open_ledger Suggestion Ticket
        ViewTable
        begin compile_sql connect connect_async connect_curator connect_curator_async copy_ledger
        current_candidate datasets expected_errors gaussian_variance laplace_variance open
        open_curator open_ledger parse_config plan read_config vectorize verify verify_chain
    """,
    "sharewell.mechanisms": """
        CacheReconstruct Independent Laplace Mechanism PrivateMultiplicativeWeights
        matrix_mechanism_variances seed
    """,
    "sharewell.query": """
        Attribute Binned Block Boolean Category Date Domain Integer LinearQuery Measure ParallelBlock
        Statement compile_sql workload
    """,
    "sharewell.schedulers": """
        InOrder QueueEntry Randomized RoundRobin Scheduler WeightedRoundRobin make_scheduler
    """,
}

NAMES = [(module, name) for module in PUBLIC for name in importlib.import_module(module).__all__]

MODULES = sorted(
    module.name
    for package in (sharewell, sharewell_lab)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_names_are_these_and_no_others(module):
    found = importlib.import_module(module)
    also = ERRORS if module == "sharewell" else set()
    assert set(found.__all__) == {*PUBLIC[module].split(), *also}
    assert len(found.__all__) == len(set(found.__all__))


@pytest.mark.parametrize(("module", "name"), NAMES, ids=".".join)
def test_every_public_name_can_be_imported_and_has_a_docstring(module, name):
    found = importlib.import_module(module)
    value = getattr(found, name)
    assert inspect.getdoc(value)
    assert getattr(found, name) is value


@pytest.mark.parametrize("page", [README, *DOCS], ids=lambda page: page.name)
def test_pages_import_public_names_only(page):
    for block in fenced_blocks(read(page)):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.Import):
                assert not [each.name for each in node.names if each.name.startswith("sharewell.")]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sharewell":
                assert node.module in PUBLIC
                known = importlib.import_module(node.module).__all__
                assert {each.name for each in node.names} <= set(known)


def test_importing_the_package_brings_no_large_library():
    """In a process of its own: this one has everything."""
    heavy = ["pydantic", "scipy", "sqlglot", "httpx", "duckdb", "opendp", "fastapi", "rich"]
    code = f"import sys, sharewell; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_another_name_is_refused_as_usual():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sharewell.nothing


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_are_true(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0
