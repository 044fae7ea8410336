// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// Immutable returns the name of an immutable field in which two objects differ. have is the existing object and want
// the desired one. It returns an empty string if have can be updated to want.
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
	byDefault := map[string]any{"value": int64(0), "preemptionPolicy": "PreemptLowerPriority"}
	for _, field := range [...]string{"value", "preemptionPolicy"} {
		a, b := have[field], want[field]
		if a == nil {
			a = byDefault[field]
		}
		if b == nil {
			b = byDefault[field]
		}
		if !reflect.DeepEqual(a, b) {
			return field
		}
	}
	return ""
}

// Keep copies fields of the existing object have that the manifest leaves open into want, and returns want. It changes
// want. managed is true if the object is managed by OLM.
type Keep func(have, want map[string]any, managed bool) map[string]any

func keepSecret(have, want map[string]any, _ bool) map[string]any {
	if _, set := want["type"]; !set && have["type"] != nil {
		want["type"] = have["type"]
	}
	return want
}

// keepAccount: an account keeps the secrets that others added, and an unmanaged one everything but what the step adds
// to them.
func keepAccount(have, want map[string]any, managed bool) map[string]any {
	unionByName(want, have, "secrets")
	unionByName(want, have, "imagePullSecrets")
	if managed {
		return want
	}
	return map[string]any{"secrets": want["secrets"], "imagePullSecrets": want["imagePullSecrets"],
		"automountServiceAccountToken": have["automountServiceAccountToken"]}
}

// unionByName puts have's entries of a list before those of want with other names.
func unionByName(want, have map[string]any, field string) {
	kept, _ := have[field].([]any)
	added, _ := want[field].([]any)
	out, seen := append([]any{}, kept...), map[string]bool{}
	nameOf := func(entry any) string {
		fields, _ := entry.(map[string]any)
		name, _ := fields["name"].(string)
		return name
	}
	for _, entry := range kept {
		seen[nameOf(entry)] = true
	}
	for _, entry := range added {
		if name := nameOf(entry); !seen[name] {
			seen[name] = true
			out = append(out, entry)
		}
	}
	if len(out) > 0 {
		want[field] = out
	}
}

// keepService: addresses and ports that the API server assigned.
func keepService(have, want map[string]any, _ bool) map[string]any {
	from, _ := have["spec"].(map[string]any)
	to, ok := want["spec"].(map[string]any)
	if !ok || from == nil {
		return want
	}
	for _, field := range [...]string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
		if isEmpty(to[field]) && !isEmpty(from[field]) {
			to[field] = runtime.DeepCopyJSONValue(from[field])
		}
	}
	if to["type"] == "NodePort" || to["type"] == "LoadBalancer" {
		keepNodePorts(from, to)
	}
	return want
}

func keepNodePorts(from, to map[string]any) {
	type port struct{ name, number, protocol string }
	key := func(p map[string]any) port {
		protocol, _ := p["protocol"].(string)
		return port{fmt.Sprint(p["name"]), fmt.Sprint(p["port"]), cmp.Or(protocol, "TCP")}
	}
	assigned := map[port]any{}
	old, _ := from["ports"].([]any)
	for _, entry := range old {
		if p, ok := entry.(map[string]any); ok && !isEmpty(p["nodePort"]) {
			assigned[key(p)] = p["nodePort"]
		}
	}
	ports, _ := to["ports"].([]any)
	for _, entry := range ports {
		if p, ok := entry.(map[string]any); ok && isEmpty(p["nodePort"]) && assigned[key(p)] != nil {
			p["nodePort"] = assigned[key(p)]
		}
	}
}

// isEmpty reports whether a JSON value is the zero value of its type.
func isEmpty(v any) bool {
	list, isList := v.([]any)
	return v == nil || v == "" || v == int64(0) || isList && len(list) == 0
}
