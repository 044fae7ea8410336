// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"encoding/json"
	"fmt"
	"strings"
)

// copyJSON returns a deep copy of JSON values, never nil. Whole numbers of other
// Go types become int64, as a decoder makes them. The error's field is the path of
// what is no JSON value, the first one by path.
func copyJSON(m map[string]any) (map[string]any, *InputError) {
	var first *InputError
	out := make(map[string]any, len(m))
	for key, value := range m {
		copied, err := copyValue(value)
		if err != nil {
			err.Field = under(key, err.Field)
			if first == nil || err.Field < first.Field {
				first = err
			}
		}
		out[key] = copied
	}
	return out, first
}

func copyValue(v any) (any, *InputError) {
	switch v := v.(type) {
	case nil, string, bool, int64, float64, json.Number:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case map[string]any:
		if v == nil {
			return nil, nil
		}
		return copyJSON(v)
	case []any:
		if v == nil {
			return nil, nil
		}
		out := make([]any, len(v))
		for i := range v {
			var err *InputError
			if out[i], err = copyValue(v[i]); err != nil {
				err.Field = under(fmt.Sprintf("[%d]", i), err.Field)
				return nil, err
			}
		}
		return out, nil
	default:
		return nil, &InputError{Problem: fmt.Sprintf("is a %T, which is no JSON value", v)}
	}
}

// under returns the path of a field below another.
func under(parent, field string) string {
	if field == "" || strings.HasPrefix(field, "[") {
		return parent + field
	}
	return parent + "." + field
}
