#!/usr/bin/env python3
"""Prints the public items of a crate, one sorted line each with its signature, from rustdoc's JSON.

Usage: .ci/public-api.py FILE.json
Implementations of traits are lines of their own; methods of traits of others, and what every type has, are not printed.
A type that can't be sent or shared between threads says so.
"""

import json
import sys

KNOWN_FORMAT = 57
STANDARD = {"alloc", "core", "std"}

# What the compiler adds to every derived equality.
NOT_PRINTED = {"StructuralPartialEq"}


class Crate:
    def __init__(self, data):
        self.index, self.paths = data["index"], data["paths"]
        self.names, self.lines, self.todo = {}, set(), []
        # Paths begin in the crate, so its name is not repeated in each of them.
        self.module(self.index[str(data["root"])], "")
        # Names are known only when all modules were walked.
        for describe in self.todo:
            describe()

    def item(self, id):
        return self.index.get(str(id))

    # Names.

    def name(self, id, written):
        if id in self.names:
            return self.names[id]
        known = self.paths.get(str(id))
        if known is None:
            return written.split("::")[-1]
        path = known["path"]
        return path[-1] if path[0] in STANDARD else "::".join(path)

    # Types, by the tag that rustdoc gives them.

    def type(self, type):
        if type is None:
            return "()"
        [(tag, it)] = type.items()
        if tag in ("primitive", "generic"):
            return it
        if tag == "resolved_path":
            return self.path(it)
        if tag == "borrowed_ref":
            lifetime = f"{it['lifetime']} " if it["lifetime"] else ""
            return f"&{lifetime}{'mut ' if it['is_mutable'] else ''}{self.type(it['type'])}"
        if tag == "tuple":
            return f"({', '.join(map(self.type, it))})"
        if tag == "slice":
            return f"[{self.type(it)}]"
        if tag == "array":
            return f"[{self.type(it['type'])}; {it['len']}]"
        if tag == "impl_trait":
            return f"impl {self.bounds(it)}"
        if tag == "dyn_trait":
            traits = [self.poly(bound) for bound in it["traits"]] + ([it["lifetime"]] if it["lifetime"] else [])
            return f"dyn {' + '.join(traits)}"
        if tag == "qualified_path":
            trait = it["trait"]
            of = self.type(it["self_type"])
            return f"<{of} as {self.path(trait)}>::{it['name']}" if trait and trait["path"] else f"{of}::{it['name']}"
        if tag == "function_pointer":
            return f"fn{self.signature(it['sig'])}"
        raise ValueError(f"a type of the kind {tag}")

    def path(self, path):
        return self.name(path["id"], path["path"]) + self.arguments(path["args"])

    def arguments(self, args):
        if args is None:
            return ""
        [(tag, it)] = args.items()
        if tag == "parenthesized":
            output = f" -> {self.type(it['output'])}" if it["output"] else ""
            return f"({', '.join(map(self.type, it['inputs']))}){output}"
        parts = [self.argument(arg) for arg in it["args"]]
        for constraint in it["constraints"]:
            [(kind, value)] = constraint["binding"].items()
            if kind == "equality":
                parts.append(f"{constraint['name']} = {self.argument(value)}")
            else:
                parts.append(f"{constraint['name']}: {self.bounds(value)}")
        return f"<{', '.join(parts)}>" if parts else ""

    def argument(self, arg):
        if arg == "infer":
            return "_"
        [(tag, it)] = arg.items()
        return {"lifetime": lambda: it, "type": lambda: self.type(it), "const": lambda: it["expr"]}.get(
            tag, lambda: self.type(arg))()

    def bounds(self, bounds):
        return " + ".join(self.bound(bound) for bound in bounds)

    def bound(self, bound):
        [(tag, it)] = bound.items()
        if tag == "outlives":
            return it
        if tag == "trait_bound":
            return {"none": "", "maybe": "?"}.get(it["modifier"], "~const ") + self.poly(it)
        return f"use<{', '.join(str(arg) for arg in it)}>"

    def poly(self, bound):
        names = [param["name"] for param in bound["generic_params"]]
        return (f"for<{', '.join(names)}> " if names else "") + self.path(bound["trait"])

    def generics(self, generics):
        params = []
        for param in generics["params"]:
            [(tag, it)] = param["kind"].items()
            if tag == "lifetime":
                outlives = it["outlives"]
                params.append(param["name"] + (f": {' + '.join(outlives)}" if outlives else ""))
            elif tag == "const":
                params.append(f"const {param['name']}: {self.type(it['type'])}")
            elif not it["is_synthetic"]:
                params.append(param["name"] + (f": {self.bounds(it['bounds'])}" if it["bounds"] else ""))
        where = []
        for predicate in generics["where_predicates"]:
            [(tag, it)] = predicate.items()
            if tag == "bound_predicate":
                where.append(f"{self.type(it['type'])}: {self.bounds(it['bounds'])}")
            elif tag == "lifetime_predicate":
                where.append(f"{it['lifetime']}: {' + '.join(it['outlives'])}")
            else:
                where.append(f"{self.type(it['lhs'])} = {self.argument(it['rhs'])}")
        return (f"<{', '.join(params)}>" if params else "", f" where {', '.join(where)}" if where else "")

    def signature(self, sig):
        inputs = ", ".join(name if self.type(type) == "Self" and name == "self" else self.input(name, type)
                           for name, type in sig["inputs"])
        return f"({inputs})" + (f" -> {self.type(sig['output'])}" if sig["output"] else "")

    def input(self, name, type):
        written = self.type(type)
        if name == "self" and written.startswith("&") and written.endswith("Self"):
            return written[:-4] + "self"
        return f"{name}: {written}"

    # Items.

    def module(self, module, path):
        if path:
            self.lines.add(f"pub mod {path}")
        for id in module["inner"]["module"]["items"]:
            item = self.item(id)
            if item and item["visibility"] == "public":
                self.public(item, path)

    def public(self, item, path):
        [(tag, it)] = item["inner"].items()
        if tag == "use":
            target = self.item(it["id"])
            if target is None or target["crate_id"] != 0:
                self.lines.add(f"pub use {path}::{'*' if it['is_glob'] else it['name']} = {it['source']}")
            elif it["is_glob"]:
                for id in target["inner"]["module"]["items"]:
                    inner = self.item(id)
                    if inner and inner["visibility"] == "public":
                        self.public(inner, path)
            elif target["id"] not in self.names:
                self.public({**target, "name": it["name"]}, path)
            else:
                self.lines.add(f"pub use {path}::{it['name']} = {self.names[target['id']]}")
            return
        path = f"{path}::{item['name']}" if path else item["name"]
        if tag == "module":
            self.module(item, path)
            return
        self.names[item["id"]] = path
        self.todo.append(lambda: self.describe(item, tag, it, path))

    def describe(self, item, tag, it, path):
        marks = "#[non_exhaustive] " if "non_exhaustive" in item["attrs"] else ""
        if tag == "function":
            self.function(item, path, "pub ")
        elif tag == "struct":
            generics, where = self.generics(it["generics"])
            self.lines.add(f"{marks}pub struct {path}{generics}{self.fields(it['kind'], path)}{where}")
            self.impls(it["impls"], path)
        elif tag == "enum":
            generics, where = self.generics(it["generics"])
            self.lines.add(f"{marks}pub enum {path}{generics}{where}")
            for id in it["variants"]:
                variant = self.item(id)
                name = f"{path}::{variant['name']}"
                self.lines.add(f"{name}{self.fields(variant['inner']['variant']['kind'], name, is_variant=True)}")
            self.impls(it["impls"], path)
        elif tag == "trait":
            generics, where = self.generics(it["generics"])
            bounds = f": {self.bounds(it['bounds'])}" if it["bounds"] else ""
            self.lines.add(f"pub trait {path}{generics}{bounds}{where}")
            for id in it["items"]:
                self.member(self.item(id), path, "")
        elif tag == "constant":
            self.lines.add(f"pub const {path}: {self.type(it['type'])}")
        elif tag == "static":
            self.lines.add(f"pub static {path}: {self.type(it['type'])}")
        elif tag == "type_alias":
            generics, where = self.generics(it["generics"])
            self.lines.add(f"pub type {path}{generics} = {self.type(it['type'])}{where}")
        elif tag in ("macro", "proc_macro"):
            self.lines.add(f"pub macro {path}!")
        else:
            raise ValueError(f"an item of the kind {tag}")

    def fields(self, kind, path, is_variant=False):
        """The fields of a tuple; those with names are lines of their own."""
        if kind in ("unit", "plain"):
            return ""
        [(tag, it)] = kind.items()
        if tag == "tuple":
            shown = [self.item(id) if id is not None else None for id in it]
            return f"({', '.join(self.type(field['inner']['struct_field']) if field else '_' for field in shown)})"
        for id in it["fields"]:
            field = self.item(id)
            if field:
                line = f"{path}::{field['name']}: {self.type(field['inner']['struct_field'])}"
                self.lines.add(line if is_variant else f"pub {line}")
        return " { _ }" if it["has_stripped_fields"] else ""

    def impls(self, ids, path):
        for id in ids:
            impl = self.item(id)
            it = impl["inner"]["impl"]
            if it["blanket_impl"]:
                continue
            if it["trait"] is None:
                for member in it["items"]:
                    item = self.item(member)
                    if item and item["visibility"] == "public":
                        self.member(item, path, "pub ")
                continue
            if it["is_synthetic"] and not it["is_negative"] or it["trait"]["path"].split("::")[-1] in NOT_PRINTED:
                continue
            generics, where = self.generics(it["generics"])
            trait = ("!" if it["is_negative"] else "") + self.path(it["trait"])
            self.lines.add(f"impl{generics} {trait} for {self.type(it['for'])}{where}")

    def member(self, item, path, visibility):
        [(tag, it)] = item["inner"].items()
        name = f"{path}::{item['name']}"
        if tag == "function":
            self.function(item, name, visibility)
        elif tag == "assoc_const":
            self.lines.add(f"{visibility}const {name}: {self.type(it['type'])}")
        elif tag == "assoc_type":
            self.lines.add(f"{visibility}type {name}")
        else:
            raise ValueError(f"a member of the kind {tag}")

    def function(self, item, path, visibility):
        it = item["inner"]["function"]
        header = it["header"]
        words = [word for word in ("const", "unsafe", "async") if header[f"is_{word}"]]
        generics, where = self.generics(it["generics"])
        self.lines.add(f"{visibility}{''.join(word + ' ' for word in words)}fn {path}{generics}{self.signature(it['sig'])}{where}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    try:
        crate = Crate(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        found = data.get("format_version")
        sys.exit(f"public-api: rustdoc's JSON has format {found}, this script reads {KNOWN_FORMAT}: {error!r}")
    print("\n".join(sorted(crate.lines)))


main()
