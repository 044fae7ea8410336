// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// owners returns the owner references that a target must have. A verdict other
// than pending says that they cannot be told yet.
func (e *evaluation) owners(t *target) ([]metav1.OwnerReference, verdict) {
	refs := manifestOwners(t.desired)
	for _, name := range t.operators() {
		if t.kind.owned && !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.Name == name }) {
			refs = append(refs, metav1.OwnerReference{
				APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: kindCSV, Name: name,
				Controller: new(false), BlockOwnerDeletion: new(false),
			})
		}
	}
	out := make([]metav1.OwnerReference, 0, len(refs))
	for _, r := range refs {
		csv := e.csvs.find(r.Name)
		switch {
		case (csv == nil || csv.UID == "") && e.versions()[r.Name]:
			continue // barred, see there
		case csv == nil || csv.UID == "":
			return nil, verdict{outcome: blocked, message: fmt.Sprintf(
				"error generating ownerrefs for %s %s: clusterserviceversions.operators.coreos.com %q not found",
				t.kind.word, t.key.Name, r.Name)}
		case csv.DeletionTimestamp != nil:
			return nil, verdict{outcome: waiting, message: waitingPrefix + "ClusterServiceVersion " + r.Name}
		}
		r.UID = csv.UID
		out = append(out, r)
	}
	return out, verdict{}
}

// barred reports that the target must wait for a ClusterServiceVersion which
// this plan is about to create.
func (e *evaluation) barred(t *target) bool {
	absent := func(name string) bool {
		csv := e.csvs.find(name)
		return e.versions()[name] && (csv == nil || csv.UID == "")
	}
	if (t.kind.owned || t.kind.labelled) && slices.ContainsFunc(t.operators(), absent) {
		return true
	}
	return slices.ContainsFunc(manifestOwners(t.desired), func(r metav1.OwnerReference) bool { return absent(r.Name) })
}

func isCSV(r metav1.OwnerReference) bool {
	return r.Kind == kindCSV && strings.HasPrefix(r.APIVersion, v1alpha1.GroupName+"/")
}

// manifestOwners reads which ClusterServiceVersions a manifest names as owners,
// each once and with its flags as they are. Other owners are left out: their UID is one of another cluster, and
// garbage collection would remove the object.
func manifestOwners(m manifest) []metav1.OwnerReference {
	list, _ := m.metadata()["ownerReferences"].([]any)
	var refs []metav1.OwnerReference
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		flag := func(key string) *bool {
			if b, ok := fields[key].(bool); ok {
				return &b
			}
			return nil
		}
		r := metav1.OwnerReference{
			APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("name"),
			Controller: flag("controller"), BlockOwnerDeletion: flag("blockOwnerDeletion"),
		}
		if isCSV(r) && r.Name != "" && !slices.ContainsFunc(refs, func(have metav1.OwnerReference) bool { return have.Name == r.Name }) {
			refs = append(refs, r)
		}
	}
	return refs
}

func setOwners(object map[string]any, owners []metav1.OwnerReference) {
	if len(owners) == 0 {
		delete(metadataOf(object), "ownerReferences")
		return
	}
	list := make([]any, len(owners))
	for i, r := range owners {
		ref := map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "name": r.Name, "uid": string(r.UID)}
		if r.Controller != nil {
			ref["controller"] = *r.Controller
		}
		if r.BlockOwnerDeletion != nil {
			ref["blockOwnerDeletion"] = *r.BlockOwnerDeletion
		}
		list[i] = ref
	}
	metadataOf(object)["ownerReferences"] = list
}

func ownedByAll(o olmcore.Object, owners []metav1.OwnerReference) bool {
	return !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return !olmcore.OwnedBy(o, r.UID) })
}

// isManaged reports whether an object was handed to OLM. What is not may be
// changed, but never owned and never deleted.
func isManaged(o olmcore.Object) bool {
	labels := o.GetLabels()
	return labels[olmcore.LabelManaged] == "true" || labels[olmcore.LabelOwner] != "" ||
		slices.ContainsFunc(o.GetOwnerReferences(), isCSV)
}

// checkOwnedCRDs refuses a ClusterServiceVersion whose CustomResourceDefinitions
// another one of the namespace owns: one that the plan does not name whoever that
// is, one that it names when it would be made beside a version that it is not in
// line with. Of two plans that were made without each other the first to run wins;
// the version of the second could never be installed, nor replace anything.
func (e *evaluation) checkOwnedCRDs(t *target) verdict {
	isNamed := slices.Contains(e.plan.Spec.ClusterServiceVersionNames, t.key.Name)
	if isNamed && t.observed != nil {
		return verdict{}
	}
	o, err := e.typed(t, t.desired.object)
	if err != nil {
		return unreadable(t, err)
	}
	version := o.(*v1alpha1.ClusterServiceVersion)
	var line map[string]bool
	if isNamed {
		line = lineOf(version, e.csvs.all)
	}
	for _, crd := range version.Spec.CustomResourceDefinitions.Owned {
		var owners []string
		for _, csv := range e.csvs.all {
			if csv != nil && !copied(csv) && csv.DeletionTimestamp == nil && owns(csv, crd.Name) && !line[csv.Name] {
				owners = append(owners, csv.Name)
			}
		}
		slices.Sort(owners)
		switch {
		case len(owners) > 1:
			return verdict{outcome: blocked, message: fmt.Sprintf(
				"error checking crd owners for: %s: Existing CSVs %v in namespace %s all claim to own CRD %s",
				t.key.Name, owners, e.plan.Namespace, crd.Name)}
		case len(owners) == 1 && isNamed:
			return verdict{outcome: blocked, message: fmt.Sprintf(
				"pre-existing CRD owners found for CRD %s of CSV %s, which does not replace %s", crd.Name, t.key.Name, owners[0])}
		case len(owners) == 1 && owners[0] != t.key.Name:
			return verdict{outcome: blocked, message: "pre-existing CRD owners found for owned CRD(s) of dependent CSV " + t.key.Name}
		}
	}
	return verdict{}
}

// lineOf returns the names of the versions that are linked with one that does not
// exist yet by what they replace; what is absent links nothing.
func lineOf(version *v1alpha1.ClusterServiceVersion, all []*v1alpha1.ClusterServiceVersion) map[string]bool {
	replaces := map[string]string{version.Name: version.Spec.Replaces}
	for _, csv := range all {
		if csv != nil && !copied(csv) {
			replaces[csv.Name] = csv.Spec.Replaces
		}
	}
	line := map[string]bool{version.Name: true}
	for grown := true; grown; {
		grown = false
		for name, old := range replaces {
			if _, exists := replaces[old]; exists && line[name] != line[old] {
				line[name], line[old], grown = true, true, true
			}
		}
	}
	return line
}

func owns(csv *v1alpha1.ClusterServiceVersion, crd string) bool {
	return slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool { return d.Name == crd })
}

// newerThan compares the versions of two ClusterServiceVersions of one package,
// as the part of their names before the first dot tells; false for others.
func newerThan(a, b *v1alpha1.ClusterServiceVersion) bool {
	return packagePrefix(a.Name) == packagePrefix(b.Name) && a.Spec.Version.Version.GT(b.Spec.Version.Version)
}

// packagePrefix is the package that the name of a ClusterServiceVersion tells.
func packagePrefix(name string) string {
	prefix, _, _ := strings.Cut(name, ".")
	return prefix
}
