#!/usr/bin/env python3
"""Every endpoint with every kind of credential, on things of one's own, of others, of another tenant and of nobody.

    tests/attacks/matrix/run.py FOLDER [--plant N|all] [--seed N] [-v]    (with countersign-gateway)

The endpoints come from crates/server/openapi.json, the answers that are right from table.py, which knows docs/protocol.md and
no gateway. Each answer is compared with the table; what is not the caller's must be answered as what nobody has, byte for
byte; no answer may have anything of the other tenant; and refused requests must change nothing. Then the table is spoiled, one
endpoint after the other, which must be noticed. `--plant` does something else: a proxy in between lets keys of one tenant pass
for the other's on one endpoint, as a gateway would without that check, for N endpoints chosen at random; each must be noticed,
by keys, by certificates of clients and by Basic. Exits 0 only if all held. Needs `cryptography`, for certificates; a minute.
"""
import argparse, collections, dataclasses, json, pathlib, random, re, sys, tempfile, time, urllib.parse

from cases import ACCESS, TABLE, Asked, Case
from certificates import uri
from methods import Methods
from plant import Plant
from table import HANDSHAKE, NONCE, bad_invitations
from wire import Answer, Client, Gateway, bearer
from world import Credential, World, unlike

ROOT = pathlib.Path(__file__).resolve().parents[3]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
GROUPS = ("none", "malformed", "ended", "roles", "other tenant", "certificates", "Basic", "methods")
KINDS = ("keys", "certificates", "Basic")
NOT_COMPARED = ("date", "content-length", "strict-transport-security")
CODES = {401: "PROTO_ERR_UNAUTHENTICATED", 403: ("PROTO_ERR_FORBIDDEN", "PROTO_ERR_SIGNATURE_INVALID"), 404: "PROTO_ERR_NOT_FOUND",
         405: "PROTO_ERR_UNSUPPORTED", 422: "PROTO_ERR_NO_RECIPIENT"}


@dataclasses.dataclass
class Probe:
    endpoint: tuple
    credential: Credential
    case: Case
    group: str
    expected: int
    answer: object = None
    faults: list = dataclasses.field(default_factory=list)
    same: tuple = None

    def __str__(self):
        case = f"{self.case.aspect} {self.case.name}".strip()
        return f"{' '.join(self.endpoint)} with {self.credential.name}" + (f", {case}" if case else "")


def expected(access, credential, status):
    """The order of docs/protocol.md: the head, the credential, its tenant, its role, and then what it asks for."""
    if credential.state == "refused":
        return 0
    if credential.state == "huge":
        return 431
    if access in ("public", "invited"):
        return status
    if credential.state == "bad":
        return 401
    if credential.state == "suspended":
        return 403
    return status if credential.role in ACCESS[access] else 403


class Matrix:
    def __init__(self, world, port, methods):
        self.methods = methods
        self.world, self.clients, self.probes, self.plant = world, {None: Client(port)}, [], None

    def client(self, context):
        """A connection for everything that is shown in handshakes; `None` for the plain one."""
        if context not in self.clients:
            self.clients[context] = Client(self.world.gateway.tls_port, context)
        return self.clients[context]

    def endpoint(self, method, path, credentials):
        row = TABLE[method, path]
        caller = row.caller(self.world)
        for credential in credentials:
            is_caller = credential.state == "good" and row.admits(credential.role)
            if is_caller and row.access not in ("public", "invited"):
                cases = list(row.cases(self.world, credential))
            else:
                cases = list(row.cases(self.world, caller))
                if credential.state != "good" or row.access in ("public", "invited"):
                    cases = [c for i, c in enumerate(cases) if i == 0 or c.aspect == cases[0].aspect and c.name == "unknown"]
                    if row.access == "invited" and credential.name == "none" and self.world.invitations:
                        cases += bad_invitations(self.world, **(NONCE if path.endswith("join") else {}))
            if credential.brief:
                cases = cases[:1]
            for case in cases:
                self.probe((method, path), row, credential, case)

    def probe(self, endpoint, row, credential, case, method=None, suffix="", group=None):
        status = expected(row.access, credential, case.status)
        asked = case.make(0 < status < 300)
        probe = Probe(endpoint, credential, case, group or credential.group, status)
        path = re.sub(r"\{(\w+)\}", lambda m: urllib.parse.quote(asked.params[m[1]], safe=""), endpoint[1]) + suffix
        if asked.query:
            path += "?" + urllib.parse.urlencode(asked.query)
        headers, context = [*credential.headers, *asked.headers], credential.context
        if row.own_key and credential.key:
            headers = self.with_own_key(credential, headers)
        elif row.own_key and credential.certified:
            context = self.world.gateway.authority.shown(uri(credential.tenant.name, credential.role, credential.id))
        body = None
        if asked.body is not None:
            headers.append(("Content-Type", "application/json"))
            body = json.dumps(asked.body).encode()
        held = 0.1 if row.held in ("sse", "websocket") and credential.tenant is self.world.b else 0.0
        if self.plant and credential.certified and credential.tenant is self.world.b:
            self.plant.swapped, context = self.plant.swapped + 1, self.plant.contexts[credential.context]
        try:
            probe.answer = self.client(context).send(method or endpoint[0], path, headers, body, held)
        except OSError as error:
            probe.answer = Answer(0, [], str(error).encode())
        self.judge(probe, row, asked, method or endpoint[0])
        self.probes.append(probe)
        return probe

    def with_own_key(self, credential, headers):
        """A key of the same owner that nobody has used yet."""
        tenant, role, id = credential.tenant, credential.role, credential.id
        key = tenant.machine_key(role) if role == "gateway-operator" else tenant.new_key(role, id)["key"]
        if self.plant and tenant is self.world.b:
            self.plant.swap(key, self.world.a.keys[role, id])
        if credential.carry:
            return [*credential.carry(key), *headers[len(credential.headers):]]
        return [(name, value.replace(credential.key, key)) for name, value in headers]

    def judge(self, probe, row, asked, method):
        answer, faults = probe.answer, probe.faults
        if answer.status != probe.expected:
            faults.append(f"{answer.status} and not {probe.expected}: {answer.body[:200].decode(errors='replace')}")
        if answer.status in (0, 431):
            return
        length = answer.header("content-length")
        if method != "HEAD" and length is not None and int(length) != len(answer.body):
            faults.append("Content-Length is not that of the body")
        if not re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", answer.header("x-request-id") or ""):
            faults.append("no X-Request-Id")
        if (answer.status == 401) != (answer.header("www-authenticate") == "Bearer"):
            faults.append("WWW-Authenticate is for 401 only")
        has_hsts, is_tls = answer.header("strict-transport-security") is not None, probe.credential.context is not None
        # No document decides it for what holds its connection: streams, WebSockets and waits without a decision come without.
        is_held = row.held and (answer.status in (101, 204) or (answer.header("content-type") or "").startswith("text/event-stream"))
        if has_hsts != (is_tls and not is_held):
            faults.append("Strict-Transport-Security is for TLS, and only for TLS")
        text = plain_text(answer, asked.ids)
        tenant = probe.credential.tenant
        for mark, owner in zip(self.world.marks, self.world.tenants):
            if owner is not tenant and row.access != "invited" and mark in text:
                faults.append(f"it has something of {owner.name}")
        if answer.status >= 400:
            probe.same = text
            if method != "HEAD" and answer.status in CODES and not is_error(probe.endpoint[1], answer):
                faults.append(f"not the error that {answer.status} is: {answer.body[:200].decode(errors='replace')}")
        elif asked.check and not faults and method == probe.endpoint[0]:
            fault = asked.check(answer)
            if fault:
                faults.append(fault)

    def compare(self):
        for probe, first in differences(self.probes):
            probe.faults.append(f"differs from {first}:\n    {probe.same}\n    {first.same}")

    # What is not one endpoint with one credential

    def other_methods(self, paths):
        """A method that a path does not have is 405 before any credential is read; HEAD is GET; a slash at the end is none."""
        for path, known in paths.items():
            caller = TABLE[known[0], path].caller(self.world)
            foreign = self.world.of(caller.role, caller.id, self.world.b)
            wrong = self.world.of("operator" if caller.role != "operator" else "approver", None)
            broken = Credential("a broken key", state="bad", headers=bearer("csk_x"))
            for credential in (Credential("none", state="bad"), broken, wrong, caller, foreign):
                for method in METHODS:
                    self.method(method, path, known, credential)

    def method(self, method, path, known, credential):
        row = TABLE[method if method in known else "GET" if "GET" in known else known[0], path]
        is_caller = credential.state == "good" and row.admits(credential.role) and row.access not in ("public", "invited")
        case = next(iter(row.cases(self.world, credential if is_caller else row.caller(self.world))))
        if method in known:
            self.probe((method, path), row, credential, dataclasses.replace(case, name="slash"), suffix="/", group="methods")
        elif method == "HEAD" and "GET" in known and not row.held:
            probe = self.probe(("GET", path), row, credential, dataclasses.replace(case, name="HEAD"), "HEAD", group="methods")
            if probe.answer.body:
                probe.faults.append("an answer to HEAD has a body")
        else:
            case, anybody = Case(method, 405, case.make), dataclasses.replace(row, access="public")
            probe = self.probe((known[0], path), anybody, credential, case, method, group="methods")
            allowed = set((probe.answer.header("allow") or "").replace(",", " ").split())
            # HEAD is wherever GET is, but for what holds its connection.
            if allowed != set(known) | ({"HEAD"} if "GET" in known and not row.held else set()):
                probe.faults.append(f"Allow is {probe.answer.header('allow')}")

    def tickets(self):
        """A ticket is for one WebSocket of its owner, once and at once."""
        w, row, endpoint = self.world, TABLE["GET", "/v1/ws"], ("GET", "/v1/ws")
        def ticket(tenant=w.a):
            return tenant.ok(("approver", "ada"), "POST", "/platform/v1/tickets")["ticket"]
        def use(name, text, status, id="ada", role="approver", tenant=w.a, more=(), context=None):
            group = "certificates" if context else "ended"
            headers = (("Sec-WebSocket-Protocol", f"ticket.{text}"), *more)
            credential = Credential(name, tenant, "approver", "ada", headers=headers, group=group, context=context)
            credential = dataclasses.replace(credential, state="good" if status in (101, 403) else "bad")
            return self.probe(endpoint, row, credential, Case(f"{role} {id}", status, lambda _: Asked(query={"role": role, "id": id}, ids=(id,), headers=HANDSHAKE)))
        good = ticket()
        use("a ticket", good, 101)
        use("a reused ticket", good, 401)
        use("a ticket of the other tenant", ticket(w.b), 101, tenant=w.b)
        use("a ticket for another's id", ticket(), 403, "eve")
        use("a ticket for another role", ticket(), 403, "ada", "enforcer")
        lost = ticket()
        use("a ticket for another's id", lost, 403, "eve")
        use("a ticket that was refused once", lost, 401)
        use("a ticket with another tenant's name", ticket(w.b).replace(w.b.name, w.a.name), 401, more=())
        use("an unknown ticket", unlike(ticket()), 401)
        use("a ticket of a revoked key", w.ticket_of_revoked, 401)
        use("a key as a ticket", w.a.keys["approver", "ada"], 401)
        use("an invitation as a ticket", w.a.own["invitation"].more, 401)
        use("a revoked key beside a ticket", ticket(), 401, more=bearer(w.ended["approver", "ada"]["revoked"]))
        own, foreign = (self.methods.of("approver", "ada", tenant).context for tenant in w.tenants)
        by_certificate = json.loads(self.client(own).send("POST", "/platform/v1/tickets").body)["ticket"]
        use("a ticket of a certificate", by_certificate, 101)
        use("a reused ticket of a certificate", by_certificate, 401)
        use("a reused ticket beside a right certificate", by_certificate, 401, context=own)
        use("a ticket beside another tenant's certificate", ticket(), 101, context=foreign)
        use("another tenant's ticket beside a right certificate", ticket(w.b), 101, tenant=w.b, context=own)
        use("a ticket for another's id beside a right certificate", ticket(), 403, "eve", context=self.methods.of("approver", "eve", w.a).context)
        use("a ticket of a revoked certificate", self.methods.ticket_of_revoked, 401)
        for method, path in TABLE:
            row_of = TABLE[method, path]
            if row_of.access not in ("public", "invited") and path != "/v1/ws":
                credential = Credential("a ticket as a subprotocol", state="bad", headers=(("Sec-WebSocket-Protocol", f"ticket.{ticket()}"),), group="malformed")
                self.probe((method, path), row_of, credential, list(row_of.cases(w, row_of.caller(w)))[0])
        time.sleep(max(0, w.ticket_made + 31 - time.time()))
        use("an expired ticket", w.used_ticket, 401)

    def unchanged(self):
        faults = []
        for tenant in self.world.tenants:
            for what, state in tenant.state().items():
                if state != self.world.before[tenant][what]:
                    faults.append(f"{tenant.name}: {what} was {self.world.before[tenant][what]} and is {state}")
        return faults


def plain_text(answer, ids):
    """An answer without what differs between two that are the same: its id, its date, how it was carried, and what was asked for."""
    id = answer.header("x-request-id") or "-"
    heads = [f"{name.lower()}: {value}" for name, value in answer.headers if name.lower() not in NOT_COMPARED]
    text = "\n".join(heads) + "\n\n" + answer.body.decode(errors="replace")
    for asked in sorted(ids, key=len, reverse=True):
        for form in {asked, urllib.parse.quote(asked, safe="")}:
            text = text.replace(form, "<asked>")
    text = text.replace(id, "<id>")
    text = re.sub(r'"msgId":"[0-9A-HJKMNP-TV-Z]{26}"', '"msgId":"<id>"', text)
    return re.sub(r'"createdAt":"[^"]+"', '"createdAt":"<time>"', text)


def is_error(path, answer):
    """An envelope on the main endpoints, a bare object elsewhere, with the code of the status."""
    try:
        value = json.loads(answer.body)
    except ValueError:
        return False
    is_main = path.startswith("/v1/") and not re.match(r"/v1/(artifact|decision|prompt|session/.*|status)$", path)
    kind = answer.header("content-type")
    if is_main != (kind == "application/proto+json") or is_main != (value.get("msgType") == "error"):
        return False
    return (value["body"] if is_main else value)["code"] in CODES[answer.status]


def differences(probes):
    """What is hidden is answered as what is not there: the same bytes for one caller at one endpoint."""
    groups = collections.defaultdict(list)
    for probe in probes:
        if probe.same is not None and probe.answer.status == probe.expected:
            # A 401, a 404 and a 405 are the same for everybody; the others have a reason in the request.
            is_general = probe.expected in (401, 404, 405)
            reason = () if is_general else (probe.credential.name, probe.case.aspect)
            groups[probe.endpoint, probe.group == "methods" and probe.case.name, probe.expected, reason].append(probe)
    return [(probe, group[0]) for group in groups.values() for probe in group[1:] if probe.same != group[0].same]


def spoil(probes):
    """Whether a wrong table would be found, and one byte more about what is another tenant's: each endpoint in turn."""
    other = {"enforcer": "approver", "approver": "enforcer", "participant": "operator", "operator": "enforcer", "authenticated": "operator",
             "gateway operator": "operator", "public": "authenticated", "invited": "authenticated"}
    by_endpoint, missed = collections.defaultdict(list), []
    for probe in probes:
        if probe.group != "methods":
            by_endpoint[probe.endpoint, kind(probe)].append(probe)
    for (endpoint, kind_of), found in by_endpoint.items():
        row, at = TABLE[endpoint], f"at {' '.join(endpoint)}, {kind_of}"
        if all(expected(other[row.access], p.credential, p.case.status) == p.answer.status for p in found):
            missed.append(f"an access that is wrong {at}")
        hidden = next((p for p in found if p.expected == 404 and p.case.name == "foreign"), None)
        if hidden:
            changed = dataclasses.replace(hidden, same=hidden.same + " ")
            if not differences([changed if p is hidden else p for p in found]):
                missed.append(f"a byte more about a foreign id {at}")
    return missed + [f"{kind_of} at {' '.join(endpoint)}" for endpoint in TABLE for kind_of in KINDS if (endpoint, kind_of) not in by_endpoint]


def kind(probe):
    return probe.group if probe.group in KINDS else "keys"


def planted(gateway, wanted):
    """Whether a check of the tenant that is missing at one endpoint is found, and nothing else."""
    able = [endpoint for endpoint, row in TABLE.items() if row.has_tenant and row.access not in ("public", "invited", "gateway operator")]
    chosen = able if wanted == "all" else random.sample(able, min(int(wanted), len(able)))
    worlds, missed = [World(gateway, whole=False) for _ in chosen], []
    gateway.turn_basic_on(worlds[0].a.keys["operator", None])
    for endpoint, world in zip(chosen, worlds):
        world.settle()
        plant, methods = Plant(gateway.port, *endpoint), Methods(world, whole=False)
        # Basic goes through the proxy, which does not speak TLS; certificates are changed before they are shown.
        others = methods.certified + [dataclasses.replace(c, context=None) for c in methods.basic]
        credentials = world.roles + [c for c in others if c.tenant is world.b]
        def found(forgets):
            matrix = Matrix(world, plant.port, methods)
            matrix.plant = plant if forgets else None
            matrix.endpoint(*endpoint, credentials)
            matrix.compare()
            return [probe for probe in matrix.probes if probe.faults], matrix.probes
        before = found(False)[0]
        for who, key in world.b.keys.items():
            plant.swap(key, world.a.keys[who])
        plant.contexts = {c.context: methods.of(c.role, c.id, world.a).context for c in methods.certified if c.tenant is world.b}
        wrong, probes = found(True)
        plant.stop()
        able_kinds = {kind(probe) for probe in probes if 0 < probe.expected < 300}
        if before:
            missed.append(endpoint)
            print(f"WRONG without a fault at {' '.join(endpoint)}: {before[0]}: {before[0].faults[0]}")
        elif unnoticed := able_kinds - {kind(probe) for probe in wrong}:
            missed.append(endpoint)
            print(f"NOT FOUND at {' '.join(endpoint)} with {', '.join(unnoticed)}, in {plant.swapped} requests")
        else:
            example = f"{wrong[0]}: {wrong[0].faults[0][:90]}"
            print(f"found at {' '.join(endpoint)} with {', '.join(sorted(able_kinds))}: {len(wrong)} of {len(probes)} wrong, such as {example}", flush=True)
    return missed, len(chosen)


def documented():
    """All endpoints that the OpenAPI document has, which must be those of the table."""
    paths = json.loads((ROOT / "crates/server/openapi.json").read_text())["paths"]
    found = {path: [m.upper() for m in methods if m.upper() in METHODS] for path, methods in paths.items()}
    endpoints = {(method, path) for path, methods in found.items() for method in methods}
    if endpoints != set(TABLE):
        sys.exit(f"matrix: only in the document or only in the table: {sorted(endpoints ^ set(TABLE))}")
    return found


def show(matrix, verbose):
    print(f"{'endpoint':58}" + "".join(f"{name:>14}" for name in GROUPS))
    cells = collections.defaultdict(list)
    for probe in matrix.probes:
        cells[probe.endpoint, probe.group].append(probe)
    for endpoint in TABLE:
        line = ""
        for group in GROUPS:
            cell = cells[endpoint, group]
            wrong = sum(bool(p.faults) for p in cell)
            line += f"{(f'{len(cell)}' + (f', {wrong} WRONG' if wrong else '')) if cell else '':>14}"
        print(f"{' '.join(endpoint):58}{line}")
    wrong = [probe for probe in matrix.probes if probe.faults]
    for probe in wrong if verbose else wrong[:40]:
        print(f"WRONG {probe}: {'; '.join(probe.faults)[:600]}")
    return len(wrong)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder")
    options.add_argument("--plant", metavar="N|all")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("-v", action="store_true")
    options = options.parse_args()
    random.seed(options.seed)
    paths, begun = documented(), time.time()
    with tempfile.TemporaryDirectory(prefix="matrix-") as home:
        gateway = Gateway(pathlib.Path(options.folder).resolve() / "countersign-gateway", home)
        try:
            if options.plant:
                missed, count = planted(gateway, options.plant)
                print(f"{count - len(missed)} of {count} missing checks of the tenant were found (seed {options.seed}, {time.time() - begun:.0f} s)")
                sys.exit(1 if missed else 0)
            world = World(gateway)
            methods = Methods(world)
            world.settle()
            matrix = Matrix(world, gateway.port, methods)
            matrix.clients[methods.outlived] = methods.open
            for method, path in TABLE:
                caller = TABLE[method, path].caller(world)
                matrix.endpoint(method, path, world.spoiled(caller) + world.roles)
                matrix.endpoint(method, path, methods.with_certificates(caller) + methods.certified + methods.basic_off(caller))
            gateway.turn_basic_on(caller.key)
            for method, path in TABLE:
                matrix.endpoint(method, path, methods.with_basic(TABLE[method, path].caller(world)))
            matrix.other_methods(paths)
            matrix.tickets()
            matrix.compare()
            changed, missed = matrix.unchanged(), spoil(matrix.probes)
            wrong = show(matrix, options.v)
        finally:
            gateway.stop()
    for fault in changed:
        print(f"CHANGED by a refused request: {fault}")
    for fault in missed:
        print(f"NOT NOTICED: {fault}")
    print(f"{len(matrix.probes)} probes, {wrong} wrong answers, {len(changed)} changes, {len(missed)} faults of our own not noticed "
          f"(seed {options.seed}, {time.time() - begun:.0f} s)")
    sys.exit(1 if wrong or changed or missed or len(matrix.probes) < 2000 else 0)


if __name__ == "__main__":
    main()
