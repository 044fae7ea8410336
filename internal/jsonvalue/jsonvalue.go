// SPDX-License-Identifier: Apache-2.0

// Package jsonvalue copies JSON values, the content of unstructured objects.
package jsonvalue

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Problem describes a value that JSON cannot hold.
type Problem struct {
	// Path is the path of the value, for example spec.ports[0].
	Path string
	// Message completes the sentence that starts with Path.
	Message string
}

// Copy returns a deep copy of m, which is never nil. Integers of other Go types become int64, as a decoder returns
// them. If m contains values that JSON cannot hold, the problem is the one with the first path; it is nil otherwise.
func Copy(m map[string]any) (map[string]any, *Problem) {
	var first *Problem
	out := make(map[string]any, len(m))
	for key, value := range m {
		copied, problem := copyValue(value)
		if problem != nil {
			problem.Path = under(key, problem.Path)
			if first == nil || problem.Path < first.Path {
				first = problem
			}
		}
		out[key] = copied
	}
	return out, first
}

func copyValue(v any) (any, *Problem) {
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
		return Copy(v)
	case []any:
		if v == nil {
			return nil, nil
		}
		return copyList(v)
	default:
		return nil, &Problem{Message: fmt.Sprintf("is a %T, which is no JSON value", v)}
	}
}

func copyList(list []any) (any, *Problem) {
	out := make([]any, len(list))
	for i := range list {
		var problem *Problem
		if out[i], problem = copyValue(list[i]); problem != nil {
			problem.Path = under(fmt.Sprintf("[%d]", i), problem.Path)
			return nil, problem
		}
	}
	return out, nil
}

// under returns the path of a field below another.
func under(parent, field string) string {
	if field == "" || strings.HasPrefix(field, "[") {
		return parent + field
	}
	return parent + "." + field
}
