"""What can be changed in a Rust source: see ci/mutants."""

import os
import re
import sys
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Its name; the file with and without it; and where and how it can be chosen when the program runs, if it can.
Mutant = namedtuple("Mutant", "name path original changed place chosen")

TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<string>b?"(?:\\.|[^"\\])*"|r\#*".*?"\#*)
    | (?P<char>b?'(?:\\.[^']*|[^'\\])')
    | (?P<lifetime>'[a-z_]\w*)
    | (?P<number>[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:e-?[0-9]+)?(?:[iuf](?:8|16|32|64|128|size))?)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<sign>\.\.=|<<=|>>=|::|->|=>|==|!=|<=|>=|&&|\|\||\+=|-=|\*=|/=|%=|\.\.|<<|[-+*/%&|^!<>=.,;:\#?@(){}\[\]$~])
    | (?P<space>\s+)
    """,
    re.X | re.S,
)
OPENING, CLOSING = "([{", ")]}"
SWAPS = {
    "==": ["!="],
    "!=": ["=="],
    "<": ["<=", ">="],
    ">": [">=", "<="],
    "<=": ["<", ">"],
    ">=": [">", "<"],
    "&&": ["||"],
    "||": ["&&"],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["/"],
    "+=": ["-="],
    "-=": ["+="],
    "*=": ["/="],
}
ENDS = [",", ";", "=", "=>", ":", "if", "while", "return", "|", "else", "in", "match", "+=", "-=", "*=", ""]
CHAINED = {"max", "min", "filter", "rev", "take", "skip", "fill", "sort", "dedup", "chain"}
RENAMED = {
    "max": "min",
    "min": "max",
    "all": "any",
    "any": "all",
    "is_none": "is_some",
    "is_some": "is_none",
    "saturating_sub": "wrapping_sub",
    "div_ceil": "div_euclid",
    "fetch_add": "fetch_sub",
    "fetch_sub": "fetch_add",
    "fetch_max": "fetch_min",
}
STEP = re.compile(r"!?\s*S::[A-Z_]+")


class Source:
    """One file: its tokens without comments and spaces, which belong together, and what is left as it is."""

    def __init__(self, path):
        self.path = path
        self.text = open(os.path.join(ROOT, path)).read()
        self.tokens = []
        at = 0
        while at < len(self.text):
            found = TOKEN.match(self.text, at)
            if not found:
                sys.exit(f"{path}: cannot read at {self.text[at:at + 30]!r}")
            if found.lastgroup not in ("comment", "space"):
                self.tokens.append((found.lastgroup, found.group(), at, found.end()))
            at = found.end()
        self.pair = {}
        stack = []
        for number, (_, word, _, _) in enumerate(self.tokens):
            if word in OPENING:
                stack.append(number)
            elif word in CLOSING:
                opened = stack.pop()
                self.pair[opened], self.pair[number] = number, opened
        self.left_out = [False] * len(self.tokens)
        self.function = [""] * len(self.tokens)
        # What cannot ask at run time whether it is changed: patterns, and functions that run in the compiler.
        self.fixed = [False] * len(self.tokens)
        self.bodies = []
        self.leave_out()
        self.find_functions()
        self.find_patterns()

    def word(self, at):
        return self.tokens[at][1] if 0 <= at < len(self.tokens) else ""

    def between(self, first, last):
        """The text from one token to another, both with it."""
        return self.text[self.tokens[first][2] : self.tokens[last][3]]

    def spaced(self, at):
        start, end = self.tokens[at][2], self.tokens[at][3]
        return self.text[start - 1 : start].isspace() and self.text[end : end + 1].isspace()

    def end_of_item(self, at):
        while at < len(self.tokens):
            if self.word(at) == "{":
                return self.pair[at]
            if self.word(at) == ";":
                return at
            at = self.pair[at] + 1 if self.word(at) in ("(", "[") else at + 1
        return len(self.tokens) - 1

    def leave_out(self):
        """Attributes, tests, imports, declarations of types and traits, and what only names a step."""
        at = 0
        while at < len(self.tokens):
            end = None
            word = self.word(at)
            if word == "#" and self.word(at + 1) in ("[", "!"):
                opened = at + 1 if self.word(at + 1) == "[" else at + 2
                end = self.pair[opened]
                if "test" in self.between(opened, end) and self.word(at + 1) == "[":
                    # The whole item behind it.
                    end = self.end_of_item(end + 1)
            elif word in ("use", "struct", "enum", "type", "mod") and self.tokens[at][0] == "word":
                end = self.end_of_item(at)
                while word == "use" and self.word(end) != ";":
                    end += 1
            elif word == "trait":
                end = self.end_of_item(at) if "Steps" in self.word(at + 1) else None
            elif word == "where":
                end = at
                while self.word(end + 1) != "{":
                    end += 1
            if end is None:
                at += 1
                continue
            for inside in range(at, end + 1):
                self.left_out[inside] = True
            at = end + 1

    def find_functions(self):
        for at, (kind, word, _, _) in enumerate(self.tokens):
            if word != "fn" or kind != "word" or self.left_out[at] or self.tokens[at + 1][0] != "word":
                continue
            opened = at
            while self.word(opened) not in ("{", ";"):
                opened = self.pair[opened] + 1 if self.word(opened) in ("(", "[") else opened + 1
            if self.word(opened) == ";":
                for inside in range(at, opened + 1):
                    self.left_out[inside] = True
                continue
            arrow = next((n for n in range(at, opened) if self.word(n) == "->"), None)
            # The arrow of a parameter's type is inside the parentheses.
            brackets = next(n for n in range(at, opened) if self.word(n) == "(")
            arrow = arrow if arrow is None or arrow > self.pair[brackets] else None
            returned = self.between(arrow + 1, opened - 1) if arrow else "()"
            for inside in range(at, opened):
                self.left_out[inside] = True
            constant = "const" in (self.word(at - 1), self.word(at - 2))
            for inside in range(opened, self.pair[opened] + 1):
                self.function[inside] = self.word(at + 1)
                self.fixed[inside] = constant
            self.bodies.append((opened, self.pair[opened], returned))

    def find_patterns(self):
        for at in range(len(self.tokens)):
            if self.word(at) != "=>":
                continue
            first = at
            while self.word(first - 1) not in ("{", ",", "}", ""):
                first = self.pair[first - 1] if self.word(first - 1) in CLOSING else first - 1
            while first < at and self.word(first) != "if":
                self.fixed[first] = True
                first += 1

    def extent(self, at):
        """The whole expression around a token, from byte to byte; None where there is none that could be another."""
        if self.fixed[at]:
            return None
        first = last = at
        while self.word(first - 1) not in ENDS and self.word(first - 1) not in OPENING + "}":
            first = self.pair[first - 1] if self.word(first - 1) in CLOSING else first - 1
        while self.word(last + 1) not in ENDS + ["{"] and self.word(last + 1) not in CLOSING:
            last = self.pair[last + 1] if self.word(last + 1) in OPENING else last + 1
        if any(self.word(n) in ("let", "return") or self.fixed[n] for n in range(first, last + 1)):
            return None
        return "expression", self.tokens[first][2], self.tokens[last][3]

    def operand_before(self, at):
        """The first token of the operand left of an operator."""
        while at > 0:
            word = self.word(at - 1)
            if word in CLOSING:
                at = self.pair[at - 1]
                continue
            if word in OPENING or word in (",", ";", "=", "=>", "if", "while", "return", "||", "|", "&&", "else", "in", "match"):
                return at
            at -= 1
        return at

    def operand_after(self, at):
        """The last token of the operand right of an operator."""
        while at + 1 < len(self.tokens):
            word = self.word(at + 1)
            if word in ("(", "["):
                at = self.pair[at + 1]
                continue
            if word in CLOSING or word in ("{", ",", ";", "=>", "||", "&&"):
                return at
            at += 1
        return at

    def condition_end(self, at):
        """The last token of a condition that begins behind `at`."""
        while True:
            word = self.word(at + 1)
            if word in ("{", "=>"):
                return at
            at = self.pair[at + 1] if word in ("(", "[") else at + 1

    def statements(self):
        """Expressions that stand alone, from first token to semicolon."""
        for at in range(len(self.tokens)):
            if self.word(at) != ";" or self.left_out[at] or not self.function[at]:
                continue
            first = at
            while True:
                word = self.word(first - 1)
                if word == "{" or word == ";":
                    break
                if word == "}" and self.word(first) not in (".", "?", ";", ")", "else", "="):
                    break
                if word in ("(", "["):
                    first = None
                    break
                first = self.pair[first - 1] if word in CLOSING else first - 1
            if first is not None and self.word(first) not in ("let", "return", "pub", "const", "static", "#", "use"):
                yield first, at


def unit_variants(sources):
    """Enum values without fields, by enum."""
    found = {}
    for source in sources:
        for name, body in re.findall(r"\benum (\w+)[^{]*\{(.*?)\n\}", source.text, re.S):
            body = re.sub(r"//[^\n]*", "", body)
            names = re.findall(r"^ {4}(\w+)(?: = \d+)?,$", body, re.M)
            if len(names) > 1:
                found[name] = names
    return found


def plain_values(returned):
    """What a function may return without thinking."""
    if returned == "()":
        return [""]
    if returned == "bool":
        return ["true", "false"]
    if re.fullmatch(r"[iu](8|16|32|64|128|size)", returned):
        return ["0", "1"]
    if returned == "f64":
        return ["0.0", "1.0"]
    if returned.startswith("Option<"):
        return ["None"]
    if returned.startswith("Vec<"):
        return ["Vec::new()"]
    return []


def changes(source, variants):
    """(first byte, last byte, new text, what it is, place, new text of that place) for every change. The place is the expression or
    statement around it, which can be chosen when the program runs; None where only a new program will do."""
    yield from larger_changes(source)
    for at, (start, end, new, what) in smaller_changes(source, variants):
        place = source.extent(at)
        if source.word(at) in ("if", "while") and not source.fixed[at]:
            place = "expression", start, end
        if place is None or not place[1] <= start <= end <= place[2]:
            yield start, end, new, what, None, ""
        else:
            yield start, end, new, what, place, source.text[place[1] : start] + new + source.text[end : place[2]]


def larger_changes(source):
    tokens = source.tokens
    for opened, closed, returned in source.bodies:
        for value in plain_values(returned):
            if source.between(opened + 1, closed - 1) != value if closed > opened + 1 else value:
                whole = tokens[opened][3], tokens[closed][2]
                place = None if source.fixed[opened] else ("body", whole[0], whole[0])
                yield *whole, f" {value} ", f"body -> {{{value}}}", place, value
    for first, last in source.statements():
        whole = tokens[first][2], tokens[last][3]
        place = None if source.fixed[first] else ("statement", *whole)
        yield *whole, "", f"drop {source.between(first, last)}", place, ""
        for at in range(first, last):
            if source.word(at) in ("+=", "-=", "*=") and source.spaced(at):
                (other,) = SWAPS[source.word(at)]
                shown = f"{source.between(first, last - 1)}: {source.word(at)} -> {other}"
                changed = source.text[whole[0] : tokens[at][2]] + other + source.text[tokens[at][3] : whole[1]]
                yield *tokens[at][2:], other, shown, place, changed


def smaller_changes(source, variants):
    tokens = source.tokens
    for at, (kind, word, start, end) in enumerate(tokens):
        if source.left_out[at]:
            continue
        before, after = source.word(at - 1), source.word(at + 1)
        if kind == "sign" and word in SWAPS and word not in ("+=", "-=", "*=") and source.spaced(at):
            for other in SWAPS[word]:
                left, right = source.operand_before(at), source.operand_after(at)
                yield at, (start, end, other, f"{source.between(left, right)}: {word} -> {other}")
            if word in ("&&", "||"):
                left, right = source.operand_before(at), source.operand_after(at)
                for first, last, rest in ((left, at, (left, at - 1)), (at, right, (at + 1, right))):
                    operand = source.between(*rest)
                    if not STEP.fullmatch(operand):
                        shown = source.between(first, last)
                        yield at, (tokens[first][2], tokens[last][3], "", f"drop {shown}")
        if word == "!" and after not in ("(", "[", "{", "=") or word == "!" and before in ("(", "&&", "||", "if", "=", "=>"):
            if not STEP.match(source.between(at, min(at + 3, len(tokens) - 1))):
                yield at, (start, end, "", f"{source.between(at, source.operand_after(at))}: no !")
        if word in ("if", "while") and after != "let":
            last = source.condition_end(at)
            condition = source.between(at + 1, last)
            if not STEP.fullmatch(condition) and " let " not in condition:
                for value in ("true", "false"):
                    yield at, (tokens[at + 1][2], tokens[last][3], value, f"{word} {condition}: {value}")
        if kind == "number" and before != "." and not re.fullmatch(r"[0-9_.]+f?", word) is None:
            line = source.text[source.text.rfind("\n", 0, start) + 1 : source.text.find("\n", end)].strip()
            others = {"0": ["1"], "1": ["0", "2"]}.get(word)
            if others is None:
                others = [word + " + 1"] if "." not in word else [word + " * 1.5"]
            for other in others:
                yield at, (start, end, other, f"{line}: {word} -> {other}")
        if word in ("true", "false") and kind == "word":
            other = "false" if word == "true" else "true"
            line = source.text[source.text.rfind("\n", 0, start) + 1 : source.text.find("\n", end)].strip()
            if after != "=>":
                yield at, (start, end, other, f"{line}: {word} -> {other}")
        if word in variants and after == "::" and source.word(at + 2) in variants[word]:
            names = variants[word]
            here = source.word(at + 2)
            other = names[(names.index(here) + 1) % len(names)]
            line = source.text[source.text.rfind("\n", 0, start) + 1 : source.text.find("\n", end)].strip()
            yield at, (tokens[at + 2][2], tokens[at + 2][3], other, f"{line}: {here} -> {other}")
        if before == "." and kind == "word" and after == "(":
            closed = source.pair[at + 1]
            if word in RENAMED and closed > at + 2:
                shown = source.between(at - 1, closed)
                yield at, (start, end, RENAMED[word], f"{shown}: {word} -> {RENAMED[word]}")
            if word in CHAINED:
                yield at, (tokens[at - 1][2], tokens[closed][3], "", f"drop {source.between(at - 1, closed)}")
            if word in ("max", "min"):
                first = at - 1
                while first > 0 and (
                    source.word(first - 1) in (".", "::")
                    or source.word(first - 1) in (")", "]")
                    or tokens[first - 1][0] in ("word", "number")
                    and source.word(first - 1) not in ("return", "in", "match", "if")
                ):
                    first = source.pair[first - 1] if source.word(first - 1) in (")", "]") else first - 1
                argument = source.between(at + 2, closed - 1)
                yield at, (tokens[first][2], tokens[closed][3], argument, f"{source.between(first, closed)} -> {argument}")


def all_mutants(places):
    paths = []
    for place in places:
        if place.endswith(".rs"):
            paths.append(place)
            continue
        for folder, _, files in sorted(os.walk(os.path.join(ROOT, place))):
            paths += [os.path.relpath(os.path.join(folder, name), ROOT) for name in sorted(files) if name.endswith(".rs")]
    sources = [Source(path) for path in paths if not path.endswith("/tests.rs")]
    variants = unit_variants(sources)
    names = {}
    mutants = []
    for source in sources:
        found = sorted(changes(source, variants), key=lambda change: change[:4])
        for start, end, new, what, place, chosen in found:
            at = max((n for n, token in enumerate(source.tokens) if token[2] <= start), default=0)
            short = re.sub(r"\s+", " ", what)
            if len(short) > 150:
                short = short[:110] + " ... " + short[-35:]
            base = source.path.split("/src/")[-1]
            name = f"{base} {source.function[at]}: {short}".replace(" :", ":")
            names[name] = names.get(name, 0) + 1
            if names[name] > 1:
                name += f" #{names[name]}"
            text = source.text[:start] + new + source.text[end:]
            mutants.append(Mutant(name, source.path, source.text, text, place, chosen))
    return mutants


def together(text, mutants):
    """A file's text in which the number of a change, which `mutant::on` is asked for, chooses it: all changes in one program. Also
    those whose places overlap others', and so are left out."""
    places, left_out = {}, []
    for number, mutant in mutants:
        _, first, last = mutant.place
        crosses = any(a < first < b < last or first < a < last < b for _, a, b in places)
        if crosses:
            left_out.append(number)
        else:
            places.setdefault(mutant.place, []).append((number, mutant.chosen))
    order = sorted(places, key=lambda place: (place[1], -place[2], place[0] != "statement"))

    def written(first, last, inside):
        """The text from byte to byte with the places inside it."""
        result, at = "", first
        while inside:
            place = inside.pop(0)
            kind, begin, end = place
            nested = []
            while inside and inside[0][2] <= end and end > begin:
                nested.append(inside.pop(0))
            result += text[at:begin]
            at = end
            original = written(begin, end, nested)
            choices = ""
            for number, new in places[place]:
                if kind == "body":
                    choices += f"if crate::mutant::on({number}) {{\n//@{number}\nreturn {new};\n//@\n}}\n"
                else:
                    choices += f"if crate::mutant::on({number}) {{\n//@{number}\n{new}\n//@\n}} else "
            if kind == "body":
                result += choices
            elif kind == "statement":
                result += f"{choices}{{ {original} }}"
            else:
                result += f"({choices}{{ {original} }})"
        return result + text[at:last]

    return written(0, len(text), order), left_out
