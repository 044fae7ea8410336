// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// propertiesAnnotation holds the properties of an installed bundle.
const PropertiesAnnotation = "operatorframework.io/properties"

// parseAnnotation returns the properties of an installed bundle.
func ParseAnnotation(text string) ([]olmcore.Property, error) {
	data := []byte(text)
	if list, ok := scanProperties(data); ok {
		return list, nil
	}
	var list struct {
		Properties []olmcore.Property `json:"properties"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("failed to unmarshal properties annotation: %w", err)
	}
	return list.Properties, nil
}

// scanProperties reads the form that every writer of the annotation gives it:
// the only key is properties, and each property has type and value in this
// order. Anything else is left to encoding/json. A namespace has one
// annotation for each operator, and all are read on each resolution.
func scanProperties(data []byte) (list []olmcore.Property, ok bool) {
	s := scanner{data: data}
	if !s.skip('{') || !s.key("properties") || !s.skip('[') {
		return nil, false
	}
	if s.skip(']') {
		return nil, s.skip('}') && s.end()
	}
	list = make([]olmcore.Property, 0, bytes.Count(data, []byte(`"value"`)))
	for {
		if !s.skip('{') || !s.key("type") {
			return nil, false
		}
		kind, ok := s.text()
		if !ok || !s.skip(',') || !s.key("value") {
			return nil, false
		}
		value := s.value()
		if !isValid(kind, value) {
			return nil, false
		}
		list = append(list, olmcore.Property{Type: kind, Value: value})
		if !s.skip('}') {
			return nil, false
		}
		if s.skip(']') {
			return list, s.skip('}') && s.end()
		}
		if !s.skip(',') {
			return nil, false
		}
	}
}

func isValid(kind string, value []byte) (ok bool) {
	switch kind {
	case PropertyGVK, PropertyGVKRequired:
		_, ok = scanFields(value, apiKeys)
	case PropertyPackage:
		_, ok = scanFields(value, packageKeys)
	}
	return ok || json.Valid(value)
}

// scanner walks over JSON. It need not notice that a value is invalid.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) blank() {
	for s.at < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) skip(c byte) bool {
	s.blank()
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) end() bool {
	s.blank()
	return s.at == len(s.data)
}

// text reads a string without escapes.
func (s *scanner) text() (string, bool) {
	s.blank()
	text, rest, ok := scanString(s.data[s.at:])
	if !ok {
		return "", false
	}
	s.at = len(s.data) - len(rest)
	return knownType(text), true
}

func (s *scanner) key(name string) bool {
	text, ok := s.text()
	return ok && text == name && s.skip(':')
}

// knownType converts without allocating for the usual words.
func knownType(text []byte) string {
	switch string(text) {
	case PropertyGVK:
		return PropertyGVK
	case PropertyPackage:
		return PropertyPackage
	case "type":
		return "type"
	case "value":
		return "value"
	}
	return string(text)
}

// value reads any value.
func (s *scanner) value() json.RawMessage {
	s.blank()
	start, depth := s.at, 0
	for ; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '"':
			s.at = closingQuote(s.data, s.at)
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return s.trimmed(start) // the end of a number or a word
			}
			depth--
		case ',':
			if depth == 0 {
				return s.trimmed(start)
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			s.at++
			return s.trimmed(start)
		}
	}
	return s.trimmed(start)
}

func (s *scanner) trimmed(start int) json.RawMessage {
	end := min(s.at, len(s.data))
	for end > start && strings.IndexByte(" \t\r\n", s.data[end-1]) >= 0 {
		end--
	}
	return s.data[start:end:end]
}

// closingQuote returns the index of the quote that ends the string that begins
// at start.
func closingQuote(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(data)
}

// projects reports whether an annotation is exactly the JSON form of a bundle's
// properties, without those that are not projected. It is a comparison of text:
// a false no costs time, not correctness.
func Projects(text string, properties []olmcore.Property) bool {
	rest, ok := strings.CutPrefix(text, `{"properties":[`)
	if !ok {
		return false
	}
	first := true
	for i := range properties {
		property := &properties[i]
		if property.Type == PropertyBundleObject || property.Type == PropertyCSVMetadata {
			continue
		}
		if !first {
			if rest, ok = strings.CutPrefix(rest, ","); !ok {
				return false
			}
		}
		first = false
		for _, part := range [...]string{`{"type":"`, property.Type, `","value":`} {
			if rest, ok = strings.CutPrefix(rest, part); !ok {
				return false
			}
		}
		if n := len(property.Value); len(rest) < n || rest[:n] != string(property.Value) {
			return false
		}
		if rest, ok = strings.CutPrefix(rest[len(property.Value):], "}"); !ok {
			return false
		}
	}
	return rest == "]}"
}
