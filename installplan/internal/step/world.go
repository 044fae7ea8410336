// SPDX-License-Identifier: Apache-2.0

package step

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

// Input is the input of Evaluate. Lists are complete, contain each object once, and contain no nil. A field without a
// comment has the meaning of the same field of installplan.Input or installplan.Config.
type Input struct {
	Now  time.Time
	Plan *v1alpha1.InstallPlan
	// Preflight is true if nothing is applied in this call.
	Preflight bool
	// HasAccount is true if the ServiceAccount of the plan exists.
	HasAccount bool

	Subscriptions             []*v1alpha1.Subscription
	ClusterServiceVersions    []*v1alpha1.ClusterServiceVersion
	Alongside                 []*v1alpha1.ClusterServiceVersion
	Announced                 []types.NamespacedName
	CustomResourceDefinitions []*apiextensionsv1.CustomResourceDefinition
	// APIServices contains the APIServices in installplan.Input. Its Complete is false if the APIServices were not read.
	APIServices     olmcore.Observed[*apiregistrationv1.APIService]
	CustomResources []ResourceVerdict
	Objects         []olmcore.Object
	ConfigMaps      []*corev1.ConfigMap
	PullSecrets     []*corev1.Secret
	CatalogSources  []*v1alpha1.CatalogSource
	LastRun         olmcore.LastResults
	Memory          *Memory

	// TakenOver contains the ClusterServiceVersions of the plan by name. The value is true if the plan must not install
	// the version any more. The steps of such a version are skipped, unless they are done.
	TakenOver map[string]bool

	OLMNamespace, GlobalNamespace                      string
	OverwriteUnmanaged, CopyAnySecret, ChangeOwnedCRDs bool
	SupportedKinds                                     []string
}

// world contains an Input with indexes of its objects, and what the steps describe.
type world struct {
	in      Input
	objects map[olmcore.Key]olmcore.Object
	// packages contains, by version, the packages of its Subscriptions, including those that the plan creates.
	packages map[string][]string
	// planned contains the ClusterServiceVersions that steps create. described contains them as the steps describe
	// them, once these steps were read.
	planned   map[string]bool
	described map[string]*v1alpha1.ClusterServiceVersion
	// defining contains the names of definitions that are not established yet, by the kind that they define.
	defining map[schema.GroupKind]string
	literals map[bundle.Reference]literal
}

func newWorld(in Input) *world {
	w := &world{
		in: in, objects: make(map[olmcore.Key]olmcore.Object, len(in.Objects)+len(in.ClusterServiceVersions)),
		packages: map[string][]string{}, planned: map[string]bool{},
		described: map[string]*v1alpha1.ClusterServiceVersion{}, defining: map[schema.GroupKind]string{},
	}
	for _, o := range in.Objects {
		key := olmcore.KeyOf(o)
		if key.Kind != kinds.CSV && key.Kind != kinds.CRD {
			w.objects[key] = o
		}
	}
	index(w, in.Alongside)
	index(w, in.ClusterServiceVersions)
	index(w, in.CustomResourceDefinitions)
	index(w, in.Subscriptions)
	for _, s := range in.Subscriptions {
		if s.Spec != nil && s.Status.CurrentCSV != "" {
			w.packages[s.Status.CurrentCSV] = append(w.packages[s.Status.CurrentCSV], s.Spec.Package)
		}
	}
	for _, s := range in.Plan.Status.Plan {
		switch {
		case s == nil:
		case s.Resource.Kind == kinds.CSV:
			w.planned[s.Resource.Name] = true
		case s.Resource.Kind == kinds.Subscription && s.Resolving != "":
			if pkg := relation.GeneratedPackage(s); pkg != "" {
				w.packages[s.Resolving] = append(w.packages[s.Resolving], pkg)
			}
		}
	}
	w.skipVersions()
	return w
}

// skipVersions marks versions that the plan would install for a generated Subscription, although another Subscription
// has another version of the package. Both versions would be installed, and no Subscription would upgrade the one of
// the plan.
func (w *world) skipVersions() {
	skipped := maps.Clone(w.in.TakenOver)
	for _, s := range w.in.Plan.Status.Plan {
		if s == nil || s.Resource.Kind != kinds.Subscription || w.here(s.Resolving) != nil {
			continue
		}
		other := w.subscriptionTo(relation.GeneratedPackage(s), bundle.NameOfStep(s))
		if other == nil || other.Status.CurrentCSV == "" || other.Status.CurrentCSV == s.Resolving || other.Status.InstalledCSV == s.Resolving {
			continue
		}
		if skipped == nil {
			skipped = map[string]bool{}
		}
		skipped[s.Resolving] = true
	}
	w.in.TakenOver = skipped
}

// subscriptionTo returns a Subscription of the namespace to a package that has another name, or nil. A Subscription
// with that name takes precedence, because the plan created it.
func (w *world) subscriptionTo(pkg, name string) (other *v1alpha1.Subscription) {
	if pkg == "" {
		return nil
	}
	for _, s := range w.in.Subscriptions {
		switch {
		case s.Name == name:
			return nil
		case s.DeletionTimestamp == nil && relation.PackageOf(s) == pkg && (other == nil || s.Name < other.Name):
			other = s
		}
	}
	return other
}

func index[O olmcore.Object](w *world, list []O) {
	for _, o := range list {
		w.objects[olmcore.KeyOf(o)] = o
	}
}

// about returns a Diagnostic about a step, or about the plan if step is ofPlan.
func (w *world) about(step int, severity olmcore.Severity, reason, format string, args ...any) olmcore.Diagnostic {
	field := ""
	if step != ofPlan {
		field = path(step)
	}
	return olmcore.Diagnose(severity, reason, olmcore.RefOf(w.in.Plan), field, format, args...)
}

// ofPlan is the position of a Diagnostic about the whole plan.
const ofPlan = -1

// isConfined reports whether the plan runs as a ServiceAccount. The controller still writes definitions.
func (w *world) isConfined() bool { return w.in.Plan.Status.AttenuatedServiceAccountRef != nil }

// version returns the existing ClusterServiceVersion with a name, or nil.
func (w *world) version(namespace, name string) *v1alpha1.ClusterServiceVersion {
	csv, _ := w.objects[olmcore.Key{Group: v1alpha1.GroupName, Kind: kinds.CSV, Namespace: namespace, Name: name}].(*v1alpha1.ClusterServiceVersion)
	return csv
}

// here returns the existing ClusterServiceVersion of the plan's namespace with a name, or nil.
func (w *world) here(name string) *v1alpha1.ClusterServiceVersion {
	return w.version(w.in.Plan.Namespace, name)
}

// known returns a ClusterServiceVersion of the plan's namespace. If it does not exist, known returns the one that the
// plan describes, or nil.
func (w *world) known(name string) *v1alpha1.ClusterServiceVersion {
	if csv := w.here(name); csv != nil {
		return csv
	}
	return w.described[name]
}

// precedes reports whether a ClusterServiceVersion is a predecessor of one of own: an earlier version of its package.
func (w *world) precedes(namespace, name string, own []string) bool {
	return namespace == w.in.Plan.Namespace && !slices.Contains(own, name) && slices.ContainsFunc(own, func(o string) bool {
		csv := w.known(o)
		return packagePrefix(o) == packagePrefix(name) || csv != nil && csv.Spec.Replaces == name
	})
}

// owns reports whether a ClusterServiceVersion lists a definition as owned.
func owns(csv *v1alpha1.ClusterServiceVersion, crd string) bool {
	return slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool { return d.Name == crd })
}

// packagePrefix returns the package in the name of a ClusterServiceVersion, which is the part before the first dot.
func packagePrefix(name string) string {
	prefix, _, _ := strings.Cut(name, ".")
	return prefix
}

// isManaged reports whether OLM manages an object. An unmanaged object may be changed, but never gets an owner and is
// never deleted.
func isManaged(o metav1.Object) bool {
	labels := o.GetLabels()
	return labels[olmcore.LabelManaged] == "true" || labels[olmcore.LabelOwner] != "" ||
		slices.ContainsFunc(o.GetOwnerReferences(), kinds.IsVersionReference)
}
