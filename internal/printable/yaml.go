// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// YAML returns a value as YAML in which what is not shown is escaped. It decodes to the same value. A document without
// such characters is that of sigs.k8s.io/yaml.
func YAML(value any) ([]byte, error) {
	document, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return YAMLOf(document)
}

// YAMLOf is YAML for a JSON document.
func YAMLOf(document []byte) ([]byte, error) {
	// YAML has escape sequences in double quotes only, and its encoder quotes few texts. It also rejects long keys. So
	// each text to be escaped and each long key is encoded as a plain word that occurs nowhere else, which is then
	// replaced by the quoted text.
	words := wordsFor(document)
	replaced, quoted, err := words.replace(document)
	if err != nil {
		return nil, err
	}
	out, err := yaml.JSONToYAML(replaced)
	if err != nil || len(quoted) == 0 {
		return out, err
	}
	for _, key := range words.longKeys {
		out = markKey(out, key)
	}
	return []byte(strings.NewReplacer(quoted...).Replace(string(out))), nil
}

// maxKey is the length in bytes up to which a key needs no "? " mark. YAML allows 1,024 characters for a key without
// one.
const maxKey = 1000

// markKey writes a key with a mark of its own: "? key", and the value behind ":" in the next line, below the mark.
func markKey(document []byte, key string) []byte {
	at := bytes.Index(document, []byte(key+":"))
	if at < 0 {
		return document
	}
	column := at - bytes.LastIndexByte(document[:at], '\n') - 1
	marked := "? " + key + "\n" + strings.Repeat(" ", column) + ":"
	return slices.Concat(document[:at], []byte(marked), document[at+len(key)+1:])
}

// words are made of a prefix that a document does not contain, and a number. longKeys are those of keys longer than
// maxKey.
type words struct {
	prefix   string
	longKeys []string
}

func wordsFor(document []byte) *words {
	for n := 0; ; n++ {
		prefix := fmt.Sprintf("text%dx", n)
		if !bytes.Contains(document, []byte(prefix)) {
			return &words{prefix: prefix}
		}
	}
}

// replace returns a JSON document in which a word stands for each text to be escaped, and these pairs of word and text.
func (w *words) replace(document []byte) (replaced []byte, quoted []string, err error) {
	var out bytes.Buffer
	for len(document) > 0 {
		start := bytes.IndexByte(document, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for end < len(document) && document[end] != '"' {
			if document[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(document))
		out.Write(document[:start])
		literal, rest := document[start:end], document[end:]
		var text string
		if err := json.Unmarshal(literal, &text); err != nil {
			return nil, nil, err
		}
		isKey := bytes.HasPrefix(bytes.TrimLeft(rest, " \n"), []byte(":"))
		isLongKey := isKey && max(len(literal), len(inYAML(text))) > maxKey
		isShownAsIs := isPlain(text) || Lines(text) == text && !strings.ContainsRune(text, joiner) // the encoder splits joined emoji
		if isShownAsIs && !isLongKey {
			out.Write(literal)
		} else {
			word := fmt.Sprintf("%s%dx", w.prefix, len(quoted)/2)
			if isLongKey {
				w.longKeys = append(w.longKeys, word)
			}
			form := inYAML(text)
			fmt.Fprintf(&out, "%q", word)
			quoted = append(quoted, word, form)
		}
		document = rest
	}
	out.Write(document)
	return out.Bytes(), quoted, nil
}

// inYAML returns a text in double quotes.
func inYAML(text string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text)
	return `"` + escape(escaped, "", func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}) + `"`
}
