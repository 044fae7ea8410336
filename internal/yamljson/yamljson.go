// SPDX-License-Identifier: Apache-2.0

// Package yamljson makes JSON of YAML as Kubernetes' own conversion does, without leaving anything to chance.
package yamljson

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
)

// Convert returns one YAML document as JSON; "null" for an empty one. Keys of different types with one text, as 1 and
// "1" are, are an error: sigs.k8s.io/yaml keeps any one of them. Of a key that is there twice the last one counts.
func Convert(document []byte) (converted []byte, err error) {
	defer recoverAsError(&err)
	var value any
	if err := yaml.Unmarshal(document, &value); err != nil {
		return nil, err
	}
	return marshal(value)
}

// recoverAsError makes an error of a panic, which leaves the other results as they are: nil, since nothing is returned.
func recoverAsError(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the YAML library gave up: %v", r)
	}
}

// marshal returns what was decoded from YAML as JSON.
func marshal(value any) ([]byte, error) {
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
	case int, int64, bool:
		return fmt.Sprint(x), true
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 32), true
	}
	return "", false
}
