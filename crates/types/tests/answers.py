#!/usr/bin/env python3
"""Asks PostgreSQL for the answers in tests/it/answers.tsv.

usage: answers.py PSQL_ARGUMENTS...   (reads tests/it/calls.txt, writes tests/it/answers.tsv)
A line of calls.txt: [@Setting=value;Setting=value ] name(type,...) | argument | argument ...   ({a;b} stands for several values in turn, NULL for NULL)
"""
import itertools, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
calls = []
for line in open(os.path.join(here, "it/calls.txt")):
    line = line.rstrip("\n")
    if not line.strip() or line.startswith("#"):
        continue
    parts = [p.strip() for p in line.split(" | ")]
    choices = []
    for p in parts[1:]:
        if p.startswith("<<") and p.endswith(">>"):
            choices.append([x.strip() for x in p[2:-2].split(" ;; " if parts[0].startswith("agg ") else ";;")])
        else:
            choices.append([p])
    for combo in itertools.product(*choices):
        calls.append((parts[0], list(combo)))
sets = {"generate_series", "unnest", "string_to_table", "regexp_matches", "regexp_split_to_table", "generate_subscripts",
    "json_each", "jsonb_each", "json_each_text", "jsonb_each_text", "json_array_elements", "jsonb_array_elements",
    "json_array_elements_text", "jsonb_array_elements_text", "json_object_keys", "jsonb_object_keys"}
sql = ["\\set VERBOSITY verbose", "\\pset null NULL", "\\pset tuples_only on", "\\pset format unaligned"]
settings = None
for sig, args in calls:
    if sig.startswith("@"):
        settings, sig = sig[1:].split(" ", 1)
        for pair in settings.split(";"):
            key, value = pair.split("=")
            sql.append("set %s = %s;" % (key, ", ".join("'" + v + "'" for v in value.split(","))))
    elif settings:
        sql.append("reset all;")
        settings = None
    name, types = sig.split("(", 1)
    types = [t for t in types.rstrip(")").split(",") if t]
    lit = []
    for t, a in zip(types, args):
        a = a.replace("\\s", " ") if a != "NULL" else a
        lit.append("NULL::" + t if a == "NULL" else "'" + a.replace("'", "''") + "'::" + t)
    if name in ("json_extract_path", "json_extract_path_text", "jsonb_extract_path", "jsonb_extract_path_text") or (name, types[-1:]) == ("jsonb_delete", ["_text"]):
        lit[-1] = "variadic " + lit[-1]
    call = f'{name if name[0] == chr(34) else chr(34) + name + chr(34)}({", ".join(lit)})'
    sql.append("\\echo @@@@")
    if name.startswith("agg "):
        def value(t, a):
            return "NULL::" + t if a == "NULL" else "'" + a + "'::" + t
        rows = ["(" + str(i) + ", " + ", ".join(value(t, a.strip()) for t, a in zip(types, row.split("/"))) + ")" for i, row in enumerate(args[0].split(";"))]
        columns = ["c%d" % i for i in range(len(types))]
        sql.append(f"select {name[4:]}({', '.join(columns)} order by o) from (values {', '.join(rows)}) v(o, {', '.join(columns)});")
        continue
    if name in sets:
        sql.append(f"select string_agg(coalesce(x::text, 'NULL'), '|') from {call} x;")
    else:
        sql.append(f"select {call};")
out = subprocess.run(["psql", "-X", "-q"] + sys.argv[1:], input="\n".join(sql), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
answers = [a.strip("\n") for a in out.split("@@@@\n")[1:]]
assert len(answers) == len(calls), (len(answers), len(calls))
import re
with open(os.path.join(here, "it/answers.tsv"), "w") as f:
    for (sig, args), a in zip(calls, answers):
        m = re.match(r"(?:psql:<stdin>:\d+: )?ERROR:  (\w{5}): (.*)", a)
        if m:
            a = f"ERROR {m[1]}: {m[2]}"
        a = a.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
        f.write("\t".join([sig, a] + [x.replace("\\s", " ") for x in args]) + "\n")
