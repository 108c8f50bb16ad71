"""Report the nodes whose operators are not checked, since onnx does not know their domain or its version."""

from onnxjson.model.display import counted, visible
from onnxjson.model.document import Function, Model
from onnxjson.model.errors import Finding
from onnxjson.model.index import index_of
from onnxjson.model.operators import function_key, newest_version, operator_key, operator_table, plain_domain


def check_opsets(model: Model) -> tuple[Finding, ...]:
    """Return warnings about imported versions that are newer than the newest known one, with the nodes not checked."""
    findings = []
    owners: list[tuple[str, Model | Function]] = [("", model)]
    owners += [(f"/functions/{position}", each) for position, each in enumerate(model.functions)]
    for address, owner in owners:
        for position, each in enumerate(owner.opset_import):
            domain, version = plain_domain(each.domain), each.version or 0
            if version <= operator_table().newest.get(domain, version):
                continue
            newest = newest_version(domain) or 0
            if version > newest:
                name = domain or "ai.onnx"
                message = f"version {version} of {name} is newer than the newest known one, {newest}"
                hint = f"{_not_checked(model, domain, address)}, and runtimes may refuse the model"
                findings.append(_warning("unknown-opset", f"{address}/opset_import/{position}", message, hint))
    return tuple(findings)


def unknown_domains(model: Model) -> tuple[Finding, ...]:
    """Return warnings about nodes whose operators are not checked, since onnx does not know their domain."""
    local_functions = {function_key(each) for each in model.functions}
    first: dict[str, str] = {}
    for ref in index_of(model).nodes():
        domain = plain_domain(ref.node.domain)
        if domain not in operator_table().newest and operator_key(ref.node) not in local_functions:
            first.setdefault(domain, ref.address)
    return tuple([
        _warning("unknown-domain", at, f'onnx does not know the operators of "{visible(domain)}"',
                 f"{_not_checked(model, domain)}, and shape inference reports nothing after them")
        for domain, at in first.items()
    ])  # fmt: skip


def _not_checked(model: Model, domain: str, within: str | None = None) -> str:
    """Count the nodes of a domain, in a function or outside of all functions if `within` is given."""
    local_functions = {function_key(each) for each in model.functions}
    count = len([
        ref
        for ref in index_of(model).nodes()
        if plain_domain(ref.node.domain) == domain
        and operator_key(ref.node) not in local_functions
        and (within is None or within == (ref.scope.root.address if ref.scope.root.kind == "function" else ""))
    ])  # fmt: skip
    return f"{counted(count, 'node')} of this domain {'was' if count == 1 else 'were'} not checked"


def _warning(code: str, address: str, message: str, hint: str) -> Finding:
    return Finding(severity="warning", code=code, address=address, message=message, hint=hint)
