// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/olmcore"
)

func metadataOf(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return metadata
}

// complete returns what a target's object must hold, without owner references:
// the manifest and the labels that say whose it is.
func (e *evaluation) complete(t *target) map[string]any {
	want := runtime.DeepCopyJSON(t.desired.object)
	metadata := metadataOf(want)
	delete(metadata, "ownerReferences")
	labels := stringsOf(metadata, "labels")
	labels[olmcore.LabelManaged] = "true"
	if t.kind.labelled && t.resolving != "" {
		owner := olmcore.Owner{Kind: kindCSV, Namespace: e.plan.Namespace, Name: t.resolving}
		if csv := e.csvs.find(t.resolving); csv != nil {
			owner.UID = csv.UID
		}
		for key, value := range owner.Labels() {
			labels[key] = value
		}
	}
	metadata["labels"] = labels
	if annotations := stringsOf(metadata, "annotations"); len(annotations) > 0 {
		metadata["annotations"] = annotations
	} else {
		delete(metadata, "annotations")
	}
	return want
}

// stepHash is the mark of an object's wanted content: what a later round
// compares instead of the object, which the API server may have completed. Whose
// incarnation the object belongs to is compared by itself, as owner references
// are.
func stepHash(want map[string]any) (string, error) {
	labels, _ := metadataOf(want)["labels"].(map[string]any)
	if uid, has := labels[olmcore.LabelOwnerUID]; has {
		delete(labels, olmcore.LabelOwnerUID)
		defer func() { labels[olmcore.LabelOwnerUID] = uid }()
	}
	return olmcore.HashCanonical(want)
}

// ownerUID is the incarnation that the owner labels of a wanted object name.
func ownerUID(want map[string]any) string {
	labels, _ := metadataOf(want)["labels"].(map[string]any)
	uid, _ := labels[olmcore.LabelOwnerUID].(string)
	return uid
}

func stamp(object map[string]any, key, hash string) {
	annotations := stringsOf(metadataOf(object), "annotations")
	annotations[key] = hash
	metadataOf(object)["annotations"] = annotations
}

// fold merges a second description of an object into the first, as applying one
// after the other would.
func fold(first, second map[string]any, kind string) map[string]any {
	out := merge(first, second, kind, true)
	for _, field := range [...]string{"ownerReferences", "finalizers"} {
		if list, ok := metadataOf(second)[field].([]any); ok {
			have, _ := metadataOf(out)[field].([]any)
			metadataOf(out)[field] = append(append([]any{}, have...), list...)
		}
	}
	return out
}

// merge returns have with the content of want: labels and annotations are
// added or overwritten, other metadata and the status are have's, everything
// else is want's. Neither is written to. An object that OLM does not manage gets
// no label that says otherwise.
func merge(have, want map[string]any, kind string, managed bool) map[string]any {
	out := runtime.DeepCopyJSON(have)
	want = runtime.DeepCopyJSON(want)
	// An unmanaged account keeps its own metadata: annotations give accounts
	// rights in clouds.
	kept := func(field, key string) bool {
		_, has := stringsOf(metadataOf(have), field)[key]
		return has && !managed && kind == "ServiceAccount"
	}
	union(out, want, "labels", func(key string) bool { return (managed || !saysOwned(key)) && !kept("labels", key) })
	union(out, want, "annotations", func(key string) bool { return !kept("annotations", key) })
	if kind == "ServiceAccount" {
		unionByName(want, have, "secrets")
		unionByName(want, have, "imagePullSecrets")
		if !managed {
			want = map[string]any{"secrets": want["secrets"], "imagePullSecrets": want["imagePullSecrets"],
				"automountServiceAccountToken": have["automountServiceAccountToken"]}
		}
	}
	keepAssigned(kind, have, want)
	for key := range out {
		if want[key] == nil && !isFrame(key) {
			delete(out, key) // typed objects say null for a list of nothing
		}
	}
	for key, value := range want {
		if !isFrame(key) && value != nil {
			out[key] = value
		}
	}
	return out
}

// isFrame tells the fields of every object from those of its kind.
func isFrame(key string) bool {
	return key == "apiVersion" || key == "kind" || key == "metadata" || key == "status"
}

func saysOwned(label string) bool {
	switch label {
	case olmcore.LabelManaged, olmcore.LabelOwner, olmcore.LabelOwnerNamespace, olmcore.LabelOwnerKind, olmcore.LabelOwnerUID:
		return true
	}
	return false
}

func union(out, want map[string]any, field string, keep func(key string) bool) {
	merged := stringsOf(metadataOf(out), field)
	for key, value := range stringsOf(metadataOf(want), field) {
		if keep(key) {
			merged[key] = value
		}
	}
	if len(merged) > 0 {
		metadataOf(out)[field] = merged
	}
}

// unionByName puts have's entries of a list before those of want with other
// names.
func unionByName(want, have map[string]any, field string) {
	kept, _ := have[field].([]any)
	added, _ := want[field].([]any)
	out := append([]any{}, kept...)
	seen := map[string]bool{}
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

// keepAssigned takes over into want what the API server assigned and the
// manifest leaves open.
func keepAssigned(kind string, have, want map[string]any) {
	switch kind {
	case "Secret":
		if _, set := want["type"]; !set && have["type"] != nil {
			want["type"] = have["type"]
		}
	case "Service":
		from, _ := have["spec"].(map[string]any)
		to, ok := want["spec"].(map[string]any)
		if !ok || from == nil {
			return
		}
		for _, field := range [...]string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
			if isEmpty(to[field]) && !isEmpty(from[field]) {
				to[field] = runtime.DeepCopyJSONValue(from[field])
			}
		}
		keepNodePorts(from, to)
	}
}

func keepNodePorts(from, to map[string]any) {
	type port struct{ name, number, protocol string }
	key := func(p map[string]any) port {
		protocol, _ := p["protocol"].(string)
		return port{fmt.Sprint(p["name"]), fmt.Sprint(p["port"]), or(protocol, "TCP")}
	}
	assigned := map[port]any{}
	old, _ := from["ports"].([]any)
	for _, entry := range old {
		if p, ok := entry.(map[string]any); ok && !isEmpty(p["nodePort"]) {
			assigned[key(p)] = p["nodePort"]
		}
	}
	kind, _ := to["type"].(string)
	if kind != "NodePort" && kind != "LoadBalancer" {
		return
	}
	ports, _ := to["ports"].([]any)
	for _, entry := range ports {
		if p, ok := entry.(map[string]any); ok && isEmpty(p["nodePort"]) && assigned[key(p)] != nil {
			p["nodePort"] = assigned[key(p)]
		}
	}
}

func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case int64:
		return x == 0
	case []any:
		return len(x) == 0
	}
	return false
}

// immutableChange names the field that would have to change and cannot.
func immutableChange(kind string, have, want map[string]any) string {
	switch kind {
	case "RoleBinding", "ClusterRoleBinding":
		if !reflect.DeepEqual(roleRef(have), roleRef(want)) {
			return "roleRef"
		}
	case "Secret":
		if t, ok := want["type"]; ok && t != "" && t != have["type"] && !(have["type"] == nil && t == "Opaque") {
			return "type"
		}
		fallthrough
	case "ConfigMap":
		if have["immutable"] != true {
			return ""
		}
		if !reflect.DeepEqual(have["data"], want["data"]) || !reflect.DeepEqual(have["binaryData"], want["binaryData"]) {
			return "data"
		}
		if want["immutable"] != true {
			return "immutable"
		}
	case "PriorityClass":
		if !sameOr(int64(0), have["value"], want["value"]) {
			return "value"
		}
		if !sameOr("PreemptLowerPriority", have["preemptionPolicy"], want["preemptionPolicy"]) {
			return "preemptionPolicy"
		}
	}
	return ""
}

// sameOr compares two values of a field that has a default.
func sameOr(byDefault, a, b any) bool {
	if a == nil {
		a = byDefault
	}
	if b == nil {
		b = byDefault
	}
	return reflect.DeepEqual(a, b)
}

func roleRef(binding map[string]any) [3]any {
	ref, _ := binding["roleRef"].(map[string]any)
	group := ref["apiGroup"]
	if isEmpty(group) {
		group = "rbac.authorization.k8s.io"
	}
	return [3]any{group, ref["kind"], ref["name"]}
}
