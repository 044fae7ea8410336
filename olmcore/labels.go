// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"maps"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Label and annotation keys that more than one package reads or writes.
const (
	// LabelManaged with the value "true" is on every object that OLM creates.
	LabelManaged = "olm.managed"
	// LabelOwner, LabelOwnerNamespace and LabelOwnerKind tie an object to an owner that garbage collection cannot
	// follow: cluster-scoped objects, and objects in other namespaces.
	LabelOwner          = "olm.owner"
	LabelOwnerNamespace = "olm.owner.namespace"
	LabelOwnerKind      = "olm.owner.kind"
	// LabelOwnerUID is ours: a veto that keeps the clean-up of one incarnation away from the objects of the next one of
	// the same name. Never required.
	LabelOwnerUID = "olm.owner.uid"
	// LabelCopiedFrom is on copied CSVs: the namespace of the original.
	LabelCopiedFrom = "olm.copiedFrom"
	// ComponentLabelPrefix starts the key that ties objects to a package.
	ComponentLabelPrefix = "operators.coreos.com/"
	// LabelGroupPrefix starts the key, with the UID of an OperatorGroup, on the namespaces that it selects.
	LabelGroupPrefix = "olm.operatorgroup.uid/"
	// KeyPrefix starts annotation and label keys of our own.
	KeyPrefix = "olmcore/"
)

// ComponentLabelKey returns the label key that ties an object to a Subscription's package:
// operators.coreos.com/<package>.<namespace>, cut to 63 bytes after the slash; its value is always empty. namespace may
// be empty. The error is an *InputError that names the field.
//
// Source: operator-lifecycle-manager pkg/controller/operators/decorators, ComponentLabelKey.
// Differs: a name that is no valid label key is an error here, not a patch that the API server rejects; the cut falls
// on a rune boundary.
func ComponentLabelKey(pkg, namespace string) (string, error) {
	const limit = 63
	if pkg == "" {
		return "", &InputError{Field: "package", Problem: "is empty"}
	}
	name := pkg
	if namespace != "" {
		name += "." + namespace
	}
	if len(name) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = strings.TrimRight(name[:cut], "._-")
	}
	key := ComponentLabelPrefix + name
	checked := name // the prefix is valid
	if strings.Contains(name, "/") {
		checked = key
	}
	if problems := validation.IsQualifiedName(checked); len(problems) > 0 {
		field := "package"
		if len(validation.IsQualifiedName(ComponentLabelPrefix+pkg)) == 0 {
			field = "namespace"
		}
		return "", &InputError{Field: field, Problem: "gives no valid label key: " + strings.Join(problems, "; ")}
	}
	return key, nil
}

// Owner is what the owner labels of an object say.
type Owner struct {
	Kind, Namespace, Name string
	// UID is empty when the label is absent, as on objects that OLM made.
	UID types.UID
}

// OwnerOf reads the owner labels; ok is false unless kind, namespace and name are all there.
func OwnerOf(labels map[string]string) (owner Owner, ok bool) {
	owner = Owner{
		Kind: labels[LabelOwnerKind], Namespace: labels[LabelOwnerNamespace],
		Name: labels[LabelOwner], UID: types.UID(labels[LabelOwnerUID]),
	}
	return owner, owner.Kind != "" && owner.Namespace != "" && owner.Name != ""
}

// Labels returns the owner labels for an object: three, or four with a UID.
func (o Owner) Labels() map[string]string {
	labels := map[string]string{
		LabelOwner: o.Name, LabelOwnerNamespace: o.Namespace, LabelOwnerKind: o.Kind,
	}
	if o.UID != "" {
		labels[LabelOwnerUID] = string(o.UID)
	}
	return labels
}

// Owns reports whether labels tie an object to this very owner: kind, namespace and name are equal, and the UID label
// is absent or equal. An owner without a UID owns every incarnation.
func (o Owner) Owns(labels map[string]string) bool {
	have, ok := OwnerOf(labels)
	if !ok || have.Kind != o.Kind || have.Namespace != o.Namespace || have.Name != o.Name {
		return false
	}
	return have.UID == "" || o.UID == "" || have.UID == o.UID
}

// MergeLabels returns have with the entries of want added or overwritten, as a new map, and whether anything changed.
// have is not written to; when nothing changes it is returned itself.
func MergeLabels(have, want map[string]string) (merged map[string]string, changed bool) {
	for key, value := range want {
		if before, there := have[key]; there && before == value {
			continue
		}
		if !changed {
			merged, changed = make(map[string]string, len(have)+len(want)), true
			maps.Copy(merged, have)
		}
		merged[key] = value
	}
	if !changed {
		return have, false
	}
	return merged, true
}
