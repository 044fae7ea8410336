// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"encoding/json"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
)

// hasDrifted reports whether Config.CorrectDrift asks to write a Deployment again.
func hasDrifted(in *Input, i int, live *appsv1.Deployment) bool {
	if !in.Config.CorrectDrift {
		return false
	}
	want, err := desiredDeployment(in, i)
	return err == nil && drifted(in, live, want)
}

// drifted compares only what the wanted spec sets: the rest of a live spec are
// the API server's defaults.
func drifted(in *Input, live, want *appsv1.Deployment) bool {
	if !in.Config.CorrectDrift || hasForeignCertificates(in, live) {
		return false
	}
	have, wanted := asJSON(&live.Spec), asJSON(&want.Spec)
	return !holds(have, wanted)
}

func asJSON(spec *appsv1.DeploymentSpec) any {
	var value any
	if text, err := json.Marshal(spec); err == nil {
		_ = json.Unmarshal(text, &value)
	}
	return value
}

// holds reports whether a value has all that another sets: maps may have more,
// lists must have the same length. What is null, empty or zero sets nothing.
func holds(have, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		if len(want) == 0 {
			return true
		}
		fields, ok := have.(map[string]any)
		for key, value := range want {
			if ok = ok && holds(fields[key], value); !ok {
				return false
			}
		}
		return ok
	case []any:
		items, _ := have.([]any)
		if len(items) != len(want) {
			return false
		}
		for i := range want {
			if !holds(items[i], want[i]) {
				return false
			}
		}
		return true
	}
	return have == want || have == nil && reflect.ValueOf(want).IsZero()
}
