"""What benchmarks of engines evaluate, over a short `text` and a number `num`."""

PYTHON = (
    "words = data['text'].split()\nreturn {'n': len(words), 'first': words[0].upper(), 'x': data.num * 2}"
)
JAVASCRIPT = (
    "const words = data.text.split(' ')\n"
    "return {n: words.length, first: words[0].toUpperCase(), x: data.num * 2}"
)
SQL = "upper(text) || ' ' || (num * 2)"
JINJA2 = "Hello {{ text }}, {% if num > 5 %}many{% else %}few{% endif %}: {{ num }}"
F_STRING = "Hello {text}, {num} of many"
