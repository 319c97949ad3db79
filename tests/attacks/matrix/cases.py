"""How a row of the table is written: who may call, what it asks for, and what must be true of an answer of success."""
import dataclasses, json

ENFORCERS, APPROVERS = {"enforcer"}, {"approver"}
ACCESS = {
    "public": None, "invited": None, "enforcer": ENFORCERS, "approver": APPROVERS, "participant": ENFORCERS | APPROVERS, "operator": {"operator"},
    "authenticated": ENFORCERS | APPROVERS | {"operator"}, "gateway operator": {"gateway-operator"},
}
# Who is tried with spoiled credentials: somebody who may call.
RIGHT = {"enforcer": ("enforcer", "robot"), "approver": ("approver", "ada"), "participant": ("approver", "ada"), "operator": ("operator", None),
         "authenticated": ("enforcer", "robot"), "gateway operator": ("gateway-operator", None), "public": ("enforcer", "robot"),
         "invited": ("enforcer", "robot")}


@dataclasses.dataclass
class Case:
    """One request. `make` builds the rest of it at the last moment, with something to use up if it is to succeed."""
    name: str
    status: int
    make: object
    aspect: str = ""


@dataclasses.dataclass
class Asked:
    params: dict = dataclasses.field(default_factory=dict)
    query: dict = dataclasses.field(default_factory=dict)
    body: object = None
    # Texts that an answer may repeat because they were asked for.
    ids: tuple = ()
    # Says what is wrong with an answer of success, if anything is: that it is about the caller's own tenant.
    check: object = None
    headers: tuple = ()


@dataclasses.dataclass
class Row:
    access: str
    cases: object
    right: tuple = None
    # "": ends at once; "sse", "websocket", "wait": holds its connection
    held: str = ""
    # A key of its own for each request, as a key does this once, or only so often
    own_key: bool = False
    has_tenant: bool = True

    def admits(self, role):
        return ACCESS[self.access] is None or role in ACCESS[self.access]

    def caller(self, world):
        return world.of(*(self.right or RIGHT[self.access]))


TABLE = {}


def row(method, path, access, **more):
    def take(cases):
        TABLE[method, path] = Row(access, cases, **more)
        return cases
    return take


def plain(status, **asked):
    return lambda w, c: [Case("", status, lambda ok: Asked(**asked))]


def things(w, kind, c, seen, hidden=404, uses_up=False, make=None, acting=None):
    """One case for each one that it may be about."""
    for name, thing in w.variants(kind):
        status = seen if thing.is_seen_by(acting or c) else hidden
        def made(ok, thing=thing):
            thing = w.again(thing) if ok and uses_up else thing
            return make(thing)
        yield Case(name, status, made, kind)


def people(w, c, ok, role, make, aspect="named"):
    """One case for each id that a request may name as its own."""
    names = {"enforcer": ["robot", "robot-2"], "approver": ["ada", "eve"]}[role] + [w.a.solo, w.b.solo, unlike_name(w.a.solo)]
    for name, id in zip(("own", "another's", "of one tenant", "of the other", "unknown"), names):
        if c.id is None and id == (w.b if c.tenant is w.a else w.a).solo:
            continue  # whoever may be anybody would really bring that name into its own tenant
        yield Case(name, ok if c.id in (None, id) else 403, lambda _, id=id: make(id), aspect)


def me(c, otherwise):
    return c.id or otherwise


def path_of(thing):
    return Asked({"requestId": thing.id}, ids=(thing.id,))


# What a request that was accepted has made must be in its maker's tenant, and only there.

def made_in(w, c, who, path, elsewhere=404):
    def check(answer):
        other = w.b if c.tenant is w.a else w.a
        here, there = c.tenant.call(who, "GET", path)[0], other.call(who, "GET", path)[0]
        return None if (here, there) == (200, elsewhere) else f"it is {here} in its own tenant and {there} in the other"
    return check


def names_tenant(c):
    return lambda answer: None if json.loads(answer.body).get("tenant") == c.tenant.name else "it is for another tenant"


def only_403(cases):
    return (case for case in cases if case.status == 403)


def unlike_name(id):
    return id[:5] + "n" + id[6:]
