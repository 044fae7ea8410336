// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	// AnnotationFirstInstalledBy is on a CustomResourceDefinition that InstallPlans of several namespaces installed. It
	// names the namespace whose operator the definition belongs to: the first of them. InstallPlans write it, and a
	// cluster administrator may change it.
	AnnotationFirstInstalledBy = KeyPrefix + "first-installed-by"
	// AnnotationAPIGroupSharedWith is set by a cluster administrator on a CustomResourceDefinition or an APIService. It
	// names namespaces, separated by commas, whose operators may serve other versions of the API group with an APIService.
	// On an APIService it also lets InstallPlans of these namespaces add CustomResourceDefinitions and versions to the
	// group.
	AnnotationAPIGroupSharedWith = KeyPrefix + "api-group-shared-with"
	// FinalizerCSVCleanup holds a ClusterServiceVersion until its cleanup is done. OLM uses the same finalizer since 0.27.
	FinalizerCSVCleanup = "operators.coreos.com/csv-cleanup"
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

// MergeMaps returns the labels or annotations have with the entries of want, and whether that changed anything. The
// result is a new map, or have itself if nothing changed.
func MergeMaps(have, want map[string]string) (merged map[string]string, changed bool) {
	for key, value := range want {
		before, there := have[key]
		if there && before == value {
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

// indexedLabel is a label by which Gather functions look for objects. Others are not worth their memory, as each term
// costs some hundred bytes for each object, and neither is one for objects of other kinds.
type indexedLabel struct {
	// byValue: they look for values, else for the key alone.
	byValue bool
	share
	kinds sets.Set[schema.GroupKind] // nil: any
}

// share says which objects have a term in common, the fewest first.
type share int

const (
	ofOwner     share = iota // the value names an object that few belong to
	ofNamespace              // those of a namespace, or of an OperatorGroup
	ofAll                    // all that are OLM's
)

// kindsNamed are kinds by name and group, such as Role.rbac.authorization.k8s.io.
func kindsNamed(names ...string) sets.Set[schema.GroupKind] {
	all := sets.New[schema.GroupKind]()
	for _, name := range names {
		all.Insert(schema.ParseGroupKind(name))
	}
	return all
}

// labelledOwners are the kinds of which objects outside of the namespace of their owner are found by its labels.
var labelledOwners = kindsNamed(
	"ClusterRole.rbac.authorization.k8s.io",
	"ClusterRoleBinding.rbac.authorization.k8s.io",
	"RoleBinding.rbac.authorization.k8s.io",
	"MutatingWebhookConfiguration.admissionregistration.k8s.io",
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io",
	"APIService.apiregistration.k8s.io",
)

// indexedKeys is the table of them.
var indexedKeys = map[string]indexedLabel{
	LabelOwner:          {true, ofOwner, labelledOwners.Union(kindsNamed("Deployment.apps"))},
	LabelOwnerNamespace: {true, ofNamespace, labelledOwners.Union(kindsNamed("Role.rbac.authorization.k8s.io", "Namespace"))},
	LabelOwnerKind:      {false, ofAll, labelledOwners},
	LabelManaged:        {true, ofAll, kindsNamed("ConfigMap")},
	LabelCopiedFrom:     {true, ofNamespace, kindsNamed("ClusterServiceVersion.operators.coreos.com")},
	"olm.catalogSource": {true, ofOwner, kindsNamed("Pod")},
	"job-name":          {true, ofOwner, kindsNamed("Pod")},
	"catalogsource.operators.coreos.com/update": {true, ofOwner, kindsNamed("Pod")},
	"operatorframework.io/bundle-unpack-ref":    {true, ofOwner, kindsNamed("Job.batch")},
}

// indexTerm returns what a label of objects of a kind is indexed by, "" for nothing. known: also by the value; it is
// what "key=value" is, else "key". The component labels of a namespace have one term: each is of few objects, of which
// each term of its own costs more than to look at the others of the namespace.
func indexTerm(kind schema.GroupKind, key, value string, known bool) (term string, of share) {
	label, is := indexedKeys[key]
	switch {
	case is && (label.byValue && !known || !label.kinds.Has(kind)):
		return "", ofAll
	case is && label.byValue:
		return key + "=" + value, label.share
	case is:
		return key, label.share
	case strings.HasPrefix(key, ComponentLabelPrefix):
		return ComponentLabelPrefix + "*" + key[max(strings.LastIndexByte(key, '.'), len(ComponentLabelPrefix)):], ofNamespace
	case strings.HasPrefix(key, LabelGroupPrefix):
		return key, ofNamespace
	}
	return "", ofAll
}

// IndexTerms returns what a cache indexes an object by, so that Readers over it find objects by their labels: a term
// for each label by which the library looks for objects of its kind, sorted. Several labels may have one.
func IndexTerms(o Object) []string {
	var terms []string
	kind := GVKOf(o).GroupKind()
	for key, value := range o.GetLabels() {
		if term, _ := indexTerm(kind, key, value, true); term != "" {
			terms = append(terms, term)
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
}

// IndexTerm returns a term of IndexTerms that every object of a kind which a selector takes has, of several one that
// the fewest objects have: those of an owner are fewer than those of a namespace, and these fewer than all that OLM
// has. "": all objects are to be gone through. The selector is still to be asked about each object that has the term; a
// nil one takes every object.
func IndexTerm(gvk schema.GroupVersionKind, selector labels.Selector) (term string) {
	if selector == nil {
		return ""
	}
	fewest := ofAll
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch values := r.ValuesUnsorted(); r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In, selection.Exists:
			value, known := "", len(values) == 1
			if known {
				value = values[0]
			}
			next, of := indexTerm(gvk.GroupKind(), r.Key(), value, known)
			if next != "" && (term == "" || of < fewest) {
				term, fewest = next, of
			}
		}
	}
	return term
}
