// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
)

// firstDocument returns the first YAML document that holds anything, as JSON, and
// whether there is another.
func firstDocument(text string) (first []byte, extra bool, err error) {
	for _, doc := range strings.Split("\n"+text, "\n---") {
		// What follows the dashes on their line is part of the separator.
		if _, rest, ok := strings.Cut(doc, "\n"); ok {
			doc = rest
		}
		if strings.TrimSpace(doc) == "" {
			continue
		}
		if first != nil {
			return first, true, nil
		}
		data, err := yamlToJSON(doc)
		if err != nil {
			return nil, false, err
		}
		if string(data) != "null" {
			first = data
		}
	}
	if first == nil {
		return nil, false, errors.New("it is empty")
	}
	return first, false, nil
}

// yamlToJSON is the conversion that Kubernetes makes, but for keys of different
// types with one text, as 1 and "1" are: which of them would stay is left to
// chance there, and is an error here.
func yamlToJSON(doc string) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal([]byte(doc), &value); err != nil {
		return nil, err
	}
	value, err := jsonValue(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// jsonValue gives every mapping keys that are strings.
func jsonValue(value any) (any, error) {
	switch x := value.(type) {
	case []any:
		for i := range x {
			var err error
			if x[i], err = jsonValue(x[i]); err != nil {
				return nil, err
			}
		}
		return x, nil
	case map[any]any:
		return jsonMapping(x)
	}
	return value, nil
}

func jsonMapping(mapping map[any]any) (map[string]any, error) {
	type entry struct {
		key   string
		value any
	}
	entries := make([]entry, 0, len(mapping))
	for key, value := range mapping {
		text, ok := keyText(key)
		if !ok {
			return nil, errors.New("a key is no text")
		}
		entries = append(entries, entry{text, value})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	out := make(map[string]any, len(entries))
	for _, e := range entries {
		if _, taken := out[e.key]; taken {
			return nil, fmt.Errorf("key %q is there twice", e.key)
		}
		var err error
		if out[e.key], err = jsonValue(e.value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func keyText(key any) (string, bool) {
	switch x := key.(type) {
	case string:
		return x, true
	case int, int64, uint64, bool:
		return fmt.Sprint(x), true
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 32), true
	}
	return "", false
}
