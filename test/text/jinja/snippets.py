"""snippets.py RENDER_CASES FOLDER: hundreds of expressions and statements give what python3-jinja2 gives."""

import sys

from peer import by_jinja, by_kiln, compare, environment

VARIABLES = {
    "a": 7, "b": -3, "f": 2.5, "g": 1e20, "z": 0, "t": True, "n": None, "s": "Hello, World", "u": "Straße Ünï ŠÍ 日本 🙂",
    "empty": "", "l": [3, 1, 2], "m": [1, "two", 3.0, None, True], "d": {"k": 1, "items": "own", "b": [1, 2]},
    "names": ["bob", "Alice", "carol", "alice"], "nested": [[1, 2], [3, [4, 5]]],
    "users": [{"name": "bob", "age": 30, "on": True}, {"name": "Al", "age": 25, "on": False}, {"name": "cy", "age": 30}],
    "quote": "it's", "both": "it's \"so\"", "lines": "one\ntwo\r\nthree\n\nfive", "sp": "  pad  ", "html": "<b>a & 'b'</b>",
    "deep": {"x": {"y": [{"z": "found"}]}}, "num": "42", "bad": "4x", "csv": "a,b,,c", "tab": "a\tb\x01é\u200b",
}  # fmt: skip

EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2|(1 + 2) * 3|7 // 2|-7 // 2|7 // -2|7 % 3|-7 % 3|7 % -3|7.5 % 2|-7.5 % 2|7.5 // 2|-7.5 // 2|2 ** 10|2 ** -1
2 ** 3 ** 2|-2 ** 2|1 / 3|1e3|1e16|1e15|123456789012345678.0|0.1 + 0.2|1.0|1e-5|0.0001|2.5e-7|1_000|0x1f|0b101|0o17|1.5e300 * 1e10
a + b|a - b|a * b|a / b|a // b|a % b|f * 2|f // 1|g|t + 1|t|n|not t|not n|not not a|- a|+ b|- f|-a ** 2
a == 7|a != 7|a < 8 < 9|a < 8 > 9|1 < 2 < 3 < 4|a >= 7|a <= 6|1 == 1.0|1 == true|'a' < 'b'|[1, 2] < [1, 3]|(1, 2) == (1, 2)|[1] == (1,)
'lo' in s|'xx' in s|'xx' not in s|2 in l|9 in l|'k' in d|'q' not in d|1 in (1, 2)|missing in [1]|1 in missing
a and b|z and b|z or b|n or 'x'|a or b and n|not a or b|not (a or b)|t and 'yes' or 'no'
'yes' if t else 'no'|'yes' if n|'a' if z else 'b' if n else 'c'|(1 if t else 2) + 3
s ~ a ~ n|1 ~ 2 + 3|1 + 2 ~ 3 * 4|'a' 'b' "c"|'a' ~ missing ~ 'b'
s|u|l|m|d|nested|(1,)|()|(1, 'a', none)|{}|{'a': 1, "b": [1.5, true]}|[[]]|['it\'s', "say \"x\"", 'both \' and "']
quote|[quote]|[both]|[tab]|[lines]|'\n\t\\ \x41 \u00e9 \U0001F642'|'a\'b'|"\d"|['\x7f', '\xa0', '\u3000', '\ue000']
s[0]|s[-1]|s[99]|s[1:4]|s[::-1]|s[::2]|s[-3:]|s[:-3]|s[5:2]|s[10:0:-2]|u[2:9]|u[::-1]|u[7]|l[0]|l[-1]|l[5]|l[1:]|l[::-1]|l[:2]|l[-2:]|l[::-2]
d.k|d['k']|d['items']|d.missing|d['missing']|d.b[1]|deep.x.y[0].z|deep['x']['y'][0]['z']|deep.x.q|users[0].name|users[-1]['name']|nested[1][1][0]|l.0|d.get('k')|d.get('q')|d.get('q', 5)
missing|missing is defined|missing is undefined|a is defined|d.q is defined|deep.x.y is defined|missing.x is defined|missing.x|missing + 1|missing()|a()|none.x
n is none|a is none|s is string|a is string|d is mapping|l is mapping|l is iterable|s is iterable|a is iterable|l is sequence|d is sequence|a is sequence|missing is iterable
a is number|f is number|t is number|a is integer|t is integer|f is float|t is boolean|a is boolean|t is true|t is false|a is true|z is false|a is odd|a is even|b is odd
9 is divisibleby 3|9 is divisibleby(4)|a is eq 7|a is equalto(7)|a is ne 7|a is lt 8|a is gt 8|a is le 7|a is ge 8|2 is in l|9 is not in l|a is not none|l is sameas l|1 is sameas true|'abc' is lower|'ABC' is upper|'Ab' is lower|range is callable|a is callable|'upper' is filter|'odd' is test|a is not odd and true|a is odd or false
s is startingwith('x')|s|nofilter|n is not none and n.x
s | upper|s | lower|s | title|s | capitalize|'foo-bar (baz) <q>' | title|u | upper|u | lower|u | title|u | capitalize|sp | trim|'xxaxx' | trim('x')|['a', 1, none] | join|['a', 1] | join(', ')|users | join(', ', attribute='name')|'abc' | join('-')
l | length|s | length|u | length|d | length|d | count|missing | length|a | length|l | first|l | last|[] | first|'' | last|s | first|s | list|d | list|u | list|l | sort|l | sort(reverse=true)|names | sort|names | sort(case_sensitive=true)|names | sort(true)|users | sort(attribute='age') | map(attribute='name') | list|users | sort(attribute='age,name') | map(attribute='name') | list|m | sort
names | unique | list|names | unique(true) | list|l | min|l | max|[] | max|names | min|users | max(attribute='age')|l | sum|users | sum(attribute='age')|[[1], [2]] | sum(start=[])|l | reverse | list|s | reverse|d | items | list|d | dictsort|{'b': 1, 'A': 2} | dictsort|{'b': 1, 'A': 2} | dictsort(true)|{'b': 1, 'A': 2} | dictsort(by='value', reverse=true)
users | selectattr('on') | map(attribute='name') | list|users | rejectattr('on') | map(attribute='name') | list|users | selectattr('age', 'equalto', 30) | list | length|users | selectattr('age', 'gt', 25) | map(attribute='name') | join(',')|users | selectattr('on', 'defined') | list | length|l | select('odd') | list|l | reject('odd') | list|m | select | list|m | reject('none') | list|m | map('string') | list|names | map('upper') | join(' ')|users | map(attribute='on', default='?') | list|['a', 'b'] | map('replace', 'a', 'x') | list|nested | map('first') | list|users | map(attribute='name') | map('length') | sum
'42' | int|'4x' | int|'4x' | int(9)|'0x1f' | int(base=16)|'1f' | int(0, 16)|'12.7' | int|12.7 | int|-12.7 | int|none | int|' 42 ' | int|'1_000' | int|'3.5' | float|'x' | float|'x' | float(1.5)|'1e3' | float|'inf' | float|a | float|b | abs|f | abs|2.5 | round|3.5 | round|2.675 | round(2)|42 | round|1234.567 | round(-2)|1234.567 | round(1, 'ceil')|1234.567 | round(1, 'floor')|-0.5 | round|1.005 | round(2)|0.5 | round(0)|42.55 | round(method='floor')
s | replace('l', 'L')|s | replace('l', 'L', 1)|'aaa' | replace('', '-')|a | replace(7, 8)|lines | indent|lines | indent(2, true)|lines | indent(2, blank=true)|lines | indent('> ')|s | wordcount|u | wordcount|'abc' | center(9)|'ab' | center(7)|html | striptags|html | escape|html | e|html | safe|a | string|'a b/c?d=é&f' | urlencode|{'a b': 'c/d', 'e': 1} | urlencode|'%s is %d' | format('x', 3)|'%(a)s' | format(a=1)|'a long text to be cut somewhere here' | truncate(12)|'a long text to be cut' | truncate(12, true)|'short' | truncate(12)|'a long text to be cut' | truncate(12, end='!', leeway=0)
missing | default('x')|n | default('x')|n | default('x', true)|'' | d('y', boolean=true)|missing | d|missing | upper|missing | list|missing | join|missing | first|missing | int|missing | tojson|missing | sort|missing | map('upper') | list
l | batch(2) | list|l | batch(2, 0) | list|[1, 2, 3, 4, 5, 6, 7] | slice(3) | list|[1, 2, 3, 4] | slice(3, 'x') | list|users | groupby('age')|names | groupby('0')|users | groupby('on', default=false) | length|d | attr('k')|d | attr('get') is callable
d | tojson|m | tojson|u | tojson|[1.0, 1e20, none, true, "a\"b\\c\n/"] | tojson|d | tojson(indent=2)|nested | tojson(indent=1)|{} | tojson(indent=4)|[] | tojson(indent=4)|{'b': 1, 'a': {'d': 1, 'c': 2}} | tojson(sort_keys=true)|u | tojson(ensure_ascii=true)|d | tojson(separators=(',', ':'))|d | tojson(indent='--')|tab | tojson|{1: 2, none: 3, true: 4, 1.5: 5} | tojson|range | tojson|(1, 2) | tojson|html | tojson|deep | tojson(indent=2, separators=(', ', ' : '))
s.upper()|s.lower()|s.title()|"they're bill's".title()|u.title()|u.upper()|u.lower()|u.swapcase()|'ß'.upper()|'ß'.capitalize()|'ΑΣ'.lower()|'ǆ'.title()|s.capitalize()|u.casefold() | length|sp.strip()|sp.lstrip()|sp.rstrip()|'xyaxy'.strip('yx')|'xyaxy'.lstrip('x')|'xyaxy'.rstrip('y')|'\u3000a\u2003'.strip()|sp.strip(none)
s.startswith('Hell')|s.startswith('x')|s.startswith(('x', 'H'))|s.endswith('ld')|s.endswith(('x', 'd'))|s.startswith('l', 2)|s.endswith('l', 0, 4)|s.startswith('')|s.startswith(1)|s.find('o')|s.find('o', 5)|s.find('zz')|s.rfind('o')|s.index('W')|s.index('zz')|u.find('日')|s.count('l')|s.count('')|'aaaa'.count('aa')|s.count('l', 3)
csv.split(',')|csv.split(',', 1)|csv.rsplit(',', 1)|'  a  b c '.split()|'  a  b c '.split(none, 1)|'  a  b c '.rsplit(none, 1)|'a b c d'.rsplit(maxsplit=2)|''.split()|''.split(',')|'a'.split('')|lines.splitlines()|lines.splitlines(true)|'a-b-c'.partition('-')|'a-b-c'.rpartition('-')|'abc'.partition('-')|'abc'.rpartition('-')|'<think>x</think>y'.split('</think>')[-1].lstrip('\n')
s.replace('l', 'L')|s.replace('l', 'L', 2)|'-'.join(['a', 'b'])|'-'.join('abc')|'-'.join([1])|''.join(names)|'ab'.center(7)|'abc'.center(8)|'ab'.ljust(5) ~ '.'|'ab'.rjust(5, '*')|'-42'.zfill(6)|'abc'.removeprefix('a')|'abc'.removesuffix('c')|'12'.isdigit()|'1a'.isdigit()|''.isdigit()|'²'.isdigit()|'²'.isdecimal()|'½'.isnumeric()|'abc'.isalpha()|'é'.isalpha()|'a1'.isalnum()|' \t'.isspace()|'AB1'.isupper()|'ab1'.islower()|'Ab Cd'.istitle()|'ab_1'.isidentifier()|'é'.isascii()|''.isascii()
'{} {}'.format(1, 'a')|'{1} {0}'.format(1, 2)|'{x} {y!r}'.format(x=1, y='q')|'{:>5}|{:<5}|{:^5}'.format(1, 'a', 'b')|'{:05.2f}'.format(3.14159)|'{:,}'.format(1234567)|'{:x} {:#X} {:b}'.format(255, 255, 5)|'{:e} {:g} {:.1%}'.format(12345.678, 0.00001, 0.256)|'{0[k]} {0[b][1]}'.format(d)|'{{}}'.format()|'{:*^9}'.format('mid')|'{:+d} {: d}'.format(5, 5)|'{:.3}'.format('abcdef')|'{}'.format(none)|'{:.3}'.format(3.14159)|'{}'.format(1e16)|'{:10}|'.format(2.5)|'{} {}'.format(1)
'%s %r' % ('a', 'b')|'%d%%' % 5|'%5.1f|' % 3.14159|'%-5s|' % 'a'|'%05d' % 42|'%x %X %o' % (255, 255, 8)|'%(k)s' % d|'%s' % [1]|'%+d' % 3|'%c' % 'x'|'%e' % 12345.6789|'%s %s' % 'a'|'%d' % 'x'|'%s' % ('a', 'b')|'%i' % 3.9|'%.3s' % 'abcdef'|'%g' % 1e10
d.keys() | list|d.values() | list|d.items() | list|{'a': 1}.items()|{'a': 1}.keys()|{'a': 1}.values()|l.index(1)|l.index(9)|l.count(3)|(1, 2).index(2)|d.copy() == d|dict(a=1, b=2)|dict({'a': 1}, b=3)|dict([('a', 1)])|namespace(a=1).a|namespace(a=1).b is defined
range(5) | list|range(2, 5) | list|range(5, 0, -2) | list|range(3)|range(1, 7, 2)|range(0)|range(5)[-1]|range(10)[2:4] | list|range(200000) | list|range(1, 2, 0)|range('a')|range(3) | length|range(3) | sum
[1, 2] + [3]|(1,) + (2,)|'ab' * 3|3 * 'ab'|[0] * 3|[1] + (2,)|'a' + 1|1 + 'a'|'a' - 'b'|1 / 0|1 // 0|1 % 0|1.5 / 0|n + 1|[] + {}|1 < 'a'|n < 1|{} < {}|'a' in 5|[1, 2, 3][1:]|1 if
{'a': 1}['a']|{1: 'x'}[1]|{1: 'x'}[1.0]|{(1, 2): 'x'}[1, 2]|{[1]: 2}|[1, 2, 3,]|{'a': 1,}|(1, 2,)|foo.bar.baz|s.nomethod|s.nomethod()|l['x']|d[[1]] is defined|a[0] is defined|a.x is defined
cycler('a', 'b').next()|joiner(', ')() ~ 'x'|raise_exception('no')|strftime_now('%%')|strftime_now('%Y') | length|strftime_now('%d %B %Y') == strftime_now('%d %B %Y')
loop|(a)|((a))|a | string | length + 1|-a | abs|1 is 1|a is b is c|1.0 // 0.3|5.5 // 1|1e308 * 10|-1e308 * 10|true + true|true | int|false | string|[true, false, none]|'a' == "a"|1 != 1.0|'10' == 10|none == none|missing == missing|missing == none|l == [3, 1, 2]|d == {'b': [1, 2], 'k': 1, 'items': 'own'}
""".strip().split("\n")  # fmt: skip

STATEMENTS = [
    "{% if a %}x{% endif %}y", "{% if z %}x{% elif n %}y{% else %}z{% endif %}", "{% if a > 5 and b < 0 %}ok{% endif %}",
    "{% for i in l %}{{ i }},{% endfor %}", "{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for i in missing %}x{% else %}none{% endfor %}", "{% for i in l if i > 1 %}{{ loop.index }}:{{ i }} {% endfor %}",
    "{% for i in l if i > 1 %}{{ loop.length }}{{ loop.last }} {% endfor %}", "{% for i in l if i > 9 %}x{% else %}e{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }};{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}", "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in nested recursive %}{% if x is iterable %}[{{ loop(x) }}]{% else %}{{ x }}@{{ loop.depth }}{{ loop.depth0 }} {% endif %}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}e{% endfor %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}", "{% for x in range(3) %}{% set q = x %}{% endfor %}{{ q }}",
    "{% set q = 1 %}{% for x in l %}{{ q }}{% set q = q + 1 %}{% endfor %}{{ q }}", "{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
    "{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns['a'] }}{{ ns.b }}", "{% set d.k = 2 %}", "{% set q, r = 1, 2 %}{{ q }}{{ r }}", "{% set q = 1, 2 %}{{ q }}",
    "{% set q %}  a{{ a }}  {% endset %}[{{ q }}]", "{% set q | upper | trim %} a{{ s }} {% endset %}[{{ q }}]", "{% if a %}{% set q = 5 %}{% endif %}{{ q }}", "{% set a = a + 1 %}{{ a }}",
    "{% macro m(x, y=2) %}{{ x }}-{{ y }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(y=4, x=5) }}{{ m() }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(q=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, q=3) }}", "{% macro m(x) %}{{ x }}{{ varargs | join('+') }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(4) }}", "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{{ a }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(x, y) m() %}{{ x + y }}{% endcall %}",
    "{% macro m() %}{% if caller %}c{% else %}n{% endif %}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% macro m() %}x{% endmacro %}{{ m.name }}{{ m is callable }}{{ m() | upper }}", "{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}",
    "{% macro m() %}{{ q }}{% endmacro %}{% for q in l %}{{ m() }}{% endfor %}", "{% for q in l %}{% macro m() %}{{ q }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m(x, y) %}{{ y }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'x': 1, 'y': 3}) }}",
    "{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{{ inner(2) }}{% endmacro %}{{ outer() }}", "{% macro m(x=[]) %}{{ x }}{% endmacro %}{{ m() }}{{ m([1]) }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aXa{% endfilter %}", "{% with q = 1, r = 2 %}{{ q }}{{ r }}{% endwith %}{{ q }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% with a = 1, q = a %}{{ q }}{% endwith %}",
    "{% generation %}x{{ a }}{% endgeneration %}y", "{% generation %}{% set q = 1 %}{% endgeneration %}{{ q }}", "{% raw %}{{ a }}{% x %}{% endraw %}", "{%- raw -%}  {{ a }}  {%- endraw -%}  x", "a {# c #} b", "a {#- c -#} b", "a\n  {# c #}\nb", "{# {{ a }} {% if %} #}x", "a{# #}",
    "  {% if a %}\n  x\n  {% endif %}\n  y", "  {%- if a %}\n  x\n  {%- endif %}\n  y", "  {%+ if a %}\n  x\n  {%+ endif %}\n  y", "{% if a +%}\nx{% endif %}", "{{ a }}\n{{ a }}\n", "x\n", "x\n\n", "\n", "", "  {{- a -}}  \n x", "a  {{+ a }}", "x {%- if a -%} y {%- endif -%} z", "\r\nx\ry\r\n{% if a %}\r\nz{% endif %}",
    "a\n   {{ a }}\n   {% set q = 1 %}\n   b", "\t{% if a %}\tx\t{% endif %}\t", "x\n\n  {%- if a %}y{% endif %}\n\n\nz", "{{ '}}' }}{{ '%}' }}{{ \"{{\" }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a':{}}}}", "{ { a } }", "{%if a%}x{%endif%}", "{{a}}{{-b}}{{- b}}", "text { % not } %} }} {", "{{ a }}%}{{ b }}",
    "{% set c = cycler('x', 'y') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}", "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% set x = [] %}{% set x = x + [1] %}{{ x }}", "{% if missing.x %}{% endif %}", "{% if missing %}a{% else %}b{% endif %}",
    "{% for m in users %}{% if loop.first %}F{% endif %}{{ m['name'] }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for m in users[::-1] %}{{ m.name }}{% endfor %}", "{% for m in users[1:] %}{{ loop.index0 }}{{ m.name }}{% endfor %}", "{% for k, v in d | dictsort %}{{ k }}{% endfor %}", "{% for k, v in d | items %}{{ k }}{{ v }}{% endfor %}",
    "{% for g in users | groupby('age') %}{{ g[0] }}:{{ g[1] | length }} {% endfor %}", "{% for i in range(3) %}{{ i }}{% if not loop.last %}-{% endif %}{% endfor %}", "{% set t %}{% for x in l %}{{ x }}{% endfor %}{% endset %}{{ t | length }}", "{% set q = s.split(', ') %}{{ q[0] }}{{ q | last }}", "{{ a,b }}", "{{ a, }}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in 1, %}{{ x }}{% endfor %}",
    "{% set loop = 5 %}{{ loop }}", "{% for x in l %}{{ x if loop.first else '-' }}{% endfor %}", "{% for x in l if loop is undefined %}{{ x }}{% endfor %}", "{% if 'a' is in ['a'] %}y{% endif %}", "{{ 'a' if a is defined and a is not none else 'b' }}", "{{ (l | map('string') | list)[0] }}", "{{ l | map('string') | join(',') | upper }}", "{% for a in a %}{% endfor %}", "{% if a is defined %}{% set x = a %}{% else %}{% set x = 0 %}{% endif %}{{ x }}",
]  # fmt: skip

MALFORMED = [
    "{{", "{{ a", "{{ a }", "{% if a %}", "{% endif %}", "{% if %}x{% endif %}", "{% for x %}{% endfor %}", "{% for x in %}{% endfor %}", "{{ a b }}", "{{ 1 + }}", "{{ (1 }}", "{{ 1) }}", "{{ [1, }}", "{{ {'a' 1} }}", "{{ 'a }}", "{# x", "{% raw %}x", "{% nosuch %}", "{% if a %}{% else %}{% else %}{% endif %}", "{{ a. }}", "{{ a.1x }}", "{{ a[ }}", "{{ a| }}",
    "{{ f(a=1, 2) }}", "{% set %}", "{% set 1 = 2 %}", "{% set a.b.c = 2 %}", "{% macro %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% break %}", "{% continue %}", "{% call x %}{% endcall %}", "{% filter %}{% endfilter %}", "{{ not }}", "{{ a not b }}", "{{ * }}", "{{ }}", "{% %}", "{{ a ? b : c }}", "{{ a && b }}", "{{ a @ b }}", "{{ $ }}", "{% for true in l %}{% endfor %}", "{% set none = 1 %}", "{{ '\\x4' }}", "{{ '\\u12' }}", 
    "{% if a %}{% endfor %}", "{% for x in l %}{% endif %}", "{{ a if }}", "{{ a[1:2:3:4] }}", "{{ f(**a, **b) }}", "{% with a %}{% endwith %}", "{{ a == }}", "{% elif %}", "{{ 1.}}", "{{ 1..2 }}", "{{ .5 }}", "{% set a = %}",
]  # fmt: skip


def cases():
    texts = ["{{ %s }}" % e for line in EXPRESSIONS for e in split(line)]
    return [{"template": t, "variables": VARIABLES} for t in texts + STATEMENTS + MALFORMED]


def split(line):
    """At bars without blanks around them and outside quotes and brackets: filters have blanks."""
    out, quote, depth, begin = [], "", 0, 0
    for i, c in enumerate(line):
        if quote:
            quote = "" if c == quote and line[i - 1] != "\\" else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "|" and depth == 0 and line[i - 1] != " ":
            out.append(line[begin:i])
            begin = i + 1
    return out + [line[begin:]]


def main(program, folder):
    env = environment()
    all_cases = cases()
    kiln = by_kiln(program, all_cases, folder)
    peer = [by_jinja(c, env) for c in all_cases]
    # the places of errors: each names the line and column
    placeless = [k for k in kiln if "error" in k and "column" not in k["error"]]
    bad = compare(all_cases, kiln, peer)
    print(f"{len(all_cases)} snippets, {sum('error' in p for p in peer)} of them errors: {bad} differ, {len(placeless)} errors without a place")
    return bad > 0 or len(placeless) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
