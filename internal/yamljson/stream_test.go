// SPDX-License-Identifier: Apache-2.0

package yamljson_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/yamljson"
)

// all returns the documents of a stream, one a line, with the keys that are there twice and with errors as they come.
func all(r io.Reader, limit int) string { return documents(yamljson.NewStream(r, limit)) }

func documents(s *yamljson.Stream) string {
	var lines []string
	for {
		document, err := s.Next()
		var unusable *yamljson.DocumentError
		var malformed *yamljson.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return strings.Join(lines, "\n")
		case errors.As(err, &unusable):
			lines = append(lines, "unusable: "+unusable.Err.Error())
		case errors.As(err, &malformed):
			return strings.Join(append(lines, "malformed: "+malformed.Err.Error()), "\n")
		case err != nil:
			return strings.Join(append(lines, "error: "+err.Error()), "\n")
		default:
			lines = append(lines, strings.TrimSpace(fmt.Sprintln(string(document.JSON), strings.Join(document.Repeated, " "))))
		}
	}
}

func TestEveryDocumentOfAStreamCountsHoweverTheyAreSeparated(t *testing.T) {
	const two = "{\"a\":1}\n{\"a\":2}"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                              {"", ""},
		"white space":                          {" \n", ""},
		"comments":                             {"# nothing\n# at all\n", ""},
		"lines of dashes":                      {"a: 1\n---\na: 2\n", two},
		"dashes at both ends":                  {"---\na: 1\n---\na: 2\n---\n", two + "\nnull"},
		"content behind the dashes":            {"--- {a: 1}\n--- {a: 2}\n", two},
		"a block behind a tag":                 {"--- !!map\na: 1\n--- !!map {a: 2}\n", two},
		"comments behind and between":          {"# x\n---  # first\na: 1\n# y\n\n---\t# second\n# z\na: 2\n", two},
		"ends in dots":                         {"a: 1\n...\n---\na: 2\n...\n", two},
		"directives":                           {"%YAML 1.1\n---\na: 1\n...\n%YAML 1.1\n---\na: 2\n", two},
		"dashes in a text":                     {"a: 1\n---\na: |\n  x\n  ---\n  y\n---\na: 2\n", "{\"a\":1}\n{\"a\":\"x\\n---\\ny\\n\"}\n{\"a\":2}"},
		"more than three dashes":               {"a: 1\n----\na: 2\n", "malformed: yaml: line 3: could not find expected ':'"},
		"carriage returns":                     {"a: 1\r---\ra: 2\r", two},
		"carriage returns and line feeds":      {"a: 1\r\n---\r\na: 2\r\n", two},
		"a byte order mark":                    {"\ufeffa: 1\n---\na: 2\n", two},
		"a byte order mark before JSON":        {"\ufeff" + two, two},
		"UTF-16":                               {"\xff\xfea\x00:\x00 \x001\x00\n\x00-\x00-\x00-\x00\n\x00a\x00:\x00 \x002\x00", two},
		"JSON in one line":                     {`{"a":1} {"a":2}`, two},
		"JSON, dashes, YAML":                   {"{\"a\":1}\n---\na: 2\n", two},
		"JSON, dashes, JSON":                   {"{\"a\":1}\n---\n{\"a\":2}\n", two},
		"JSON, a comment, dashes":              {"{\"a\":1}\n# x\n---\n{\"a\":2}\n", two},
		"YAML, dashes, JSON":                   {"a: 1\n---\n{\"a\":2}\n", two},
		"braces that are YAML":                 {"{a: 1}\n---\n{a: 2}\n", two},
		"empty documents":                      {"---\n---\na: 1\n---\n# nothing\n---\na: 2\n", "null\n{\"a\":1}\nnull\n{\"a\":2}"},
		"a document that is not usable":        {"a: 1\n---\na: .inf\n---\n? [x]\n: y\n---\na: 2\n", "{\"a\":1}\nunusable: json: unsupported value: +Inf\nunusable: yaml: invalid map key: []interface {}{\"x\"}\n{\"a\":2}"},
		"JSON after YAML without dashes":       {"a: 1\n{\"a\":2}\n", "malformed: yaml: line 3: could not find expected ':'"},
		"two JSON values in one YAML document": {"--- {\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\nmalformed: yaml: line 1: did not find expected <document start>"},
		"more after dots, without dashes":      {"a: 1\n...\na: 2\n", two},
		"dots, comments, content":              {"a: 1\n...  # x\n# y\n\n...\n...\n  a: 2\n...", two},
		"dots and carriage returns":            {"a: 1\r...\ra: 2\r\n...\r\n", two},
		"JSON, dots, JSON":                     {"{\"a\":1}\n...\n{\"a\":2}\n", two},
		"JSON, a comment, JSON":                {"{\"a\":1}\n# x\n{\"a\":2}\n", two},
		"dots that end nothing":                {"a: 1\nb: |\n  x\n  ...\n  y\n...z: 2\n....: 3\n", `{"....":3,"...z":2,"a":1,"b":"x\n...\ny\n"}`},
		"content in the line of the dots":      {"a: 1\n... a: 2\n", two},
		"JSON that is cut":                     {`{"a":1}{"a":`, "{\"a\":1}\nmalformed: unexpected EOF"},
		"a word in JSON":                       {`{"a":1} {"a":]}`, "{\"a\":1}\nmalformed: invalid character ']' looking for beginning of value"},
		"keys that are there twice":            {"a: 1\nb: [{c: 1, d: 2, c: 3}]\na: 2\n", `{"a":2,"b":[{"c":3,"d":2}]} .b[0].c .a`},
		"what is merged is not there twice":    {"x: &x {a: 1, b: 1}\nz: {<<: *x, a: 2}\n", `{"x":{"a":1,"b":1},"z":{"a":2,"b":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, all(strings.NewReader(c.text), 1<<20))
			require.Equal(t, c.want, all(io.MultiReader(strings.NewReader(c.text[:len(c.text)/2]), strings.NewReader(c.text[len(c.text)/2:])), 1<<20))
		})
	}
}

func TestAStreamEndsWithItsReaderAndAtItsLimit(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, text := range []string{"a: 1\n---\na: 2", `{"a":1}{"a":`} {
		r := io.MultiReader(strings.NewReader(text), iotestErr{broken})
		s := yamljson.NewStream(r, 1<<20)
		var err error
		for err == nil {
			_, err = s.Next()
		}
		require.ErrorIs(t, err, broken)
		_, again := s.Next()
		require.Equal(t, err, again)
	}
	long := strings.Repeat("x", 100_000)
	require.Equal(t, "error: "+yamljson.ErrTooLarge.Error(), all(strings.NewReader("a: "+long), 1<<16))
	require.Equal(t, "error: "+yamljson.ErrTooLarge.Error(), all(strings.NewReader(`{"a":"`+long+`"}`), 1<<16))
}

type iotestErr struct{ err error }

func (r iotestErr) Read([]byte) (int, error) { return 0, r.err }

func TestAliasesCountAsWhatTheyStandFor(t *testing.T) {
	text := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 29_000) + "]\n---\nc: 1\n"
	require.Less(t, len(text), 188<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Equal(t, "unusable: its aliases make it too large\n{\"c\":1}", all(strings.NewReader(text), 64<<20))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))

	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	require.Equal(t, "unusable: yaml: document contains excessive aliasing", all(strings.NewReader(laughs), 64<<20))
	require.Equal(t, "unusable: yaml: anchor 'a' value contains itself", all(strings.NewReader("a: &a [*a]\n"), 64<<20))
	many := strings.Repeat("a: &a "+strings.Repeat("x", 200)+"\nb: ["+strings.Repeat("*a,", 200)+"]\n---\n", 20)
	require.Contains(t, all(strings.NewReader(many), 64<<20), "unusable: its aliases make it too large", "those of all documents count together")
	few := "a: &a {b: [c, d]}\ne: *a\nf: *a\n"
	require.Equal(t, `{"a":{"b":["c","d"]},"e":{"b":["c","d"]},"f":{"b":["c","d"]}}`, all(strings.NewReader(few), 64<<20))
}

func FuzzStream(f *testing.F) {
	for _, text := range []string{
		"a: 1\n---\na: 2\n", "--- {a: 1}\n...\n# c\n--- !!map\na: 2\r---\rx", "\ufeff{\"a\":1}\n---\n{b: &b [1], c: *b}", "a: &a {b: 1}\nc: {<<: *a, b: 2, b: 3}\n",
		"%YAML 1.1\n---\n? x\n: y\n", "{\"a\":1}{\"a\":", "a: &a [*a]\n", "1: a\n\"1\": b\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := yamljson.NewStream(strings.NewReader(string(text)), 1<<16)
		size := 0
		for range len(text) + 2 { // each takes at least a byte
			document, err := s.Next()
			if err != nil && !errors.As(err, new(*yamljson.DocumentError)) {
				return
			}
			// Six is the longest way to write a character.
			if size += len(document.JSON); size > 6*(16*len(text)+64<<10+16*512) {
				t.Fatalf("%d bytes became %d", len(text), size)
			}
		}
		t.Fatal("the stream has no end")
	})
}
