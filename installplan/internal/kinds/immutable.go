// SPDX-License-Identifier: Apache-2.0

package kinds

import "reflect"

// Immutable names the field that would have to change for an object to hold what is
// wanted, and cannot; empty for none.
type Immutable func(have, want map[string]any) string

func immutableRoleRef(have, want map[string]any) string {
	roleRef := func(binding map[string]any) [3]any {
		ref, _ := binding["roleRef"].(map[string]any)
		group := ref["apiGroup"]
		if isEmpty(group) {
			group = "rbac.authorization.k8s.io"
		}
		return [3]any{group, ref["kind"], ref["name"]}
	}
	if !reflect.DeepEqual(roleRef(have), roleRef(want)) {
		return "roleRef"
	}
	return ""
}

func immutableSecret(have, want map[string]any) string {
	if t, ok := want["type"]; ok && t != "" && t != have["type"] && !(have["type"] == nil && t == "Opaque") {
		return "type"
	}
	return immutableData(have, want)
}

func immutableData(have, want map[string]any) string {
	switch {
	case have["immutable"] != true:
		return ""
	case !reflect.DeepEqual(have["data"], want["data"]) || !reflect.DeepEqual(have["binaryData"], want["binaryData"]):
		return "data"
	case want["immutable"] != true:
		return "immutable"
	}
	return ""
}

func immutablePriority(have, want map[string]any) string {
	same := func(field string, byDefault any) bool {
		a, b := have[field], want[field]
		if a == nil {
			a = byDefault
		}
		if b == nil {
			b = byDefault
		}
		return reflect.DeepEqual(a, b)
	}
	switch {
	case !same("value", int64(0)):
		return "value"
	case !same("preemptionPolicy", "PreemptLowerPriority"):
		return "preemptionPolicy"
	}
	return ""
}
