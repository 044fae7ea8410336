// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/crd"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/versions"
	"github.com/olmcore/olm/olmcore"
)

// Input is what the steps of a plan are judged by. Lists are complete, name each object
// once and have no nil entries; fields without a comment are those of
// installplan.Input and installplan.Config.
type Input struct {
	Now  time.Time
	Plan *v1alpha1.InstallPlan
	// Preflight: nothing is applied in this round, whatever is found.
	Preflight bool
	// HasAccount: the ServiceAccount that the plan runs as exists.
	HasAccount bool

	Subscriptions             []*v1alpha1.Subscription
	ClusterServiceVersions    []*v1alpha1.ClusterServiceVersion
	Alongside                 []*v1alpha1.ClusterServiceVersion
	Announced                 []types.NamespacedName
	CustomResourceDefinitions []*apiextensionsv1.CustomResourceDefinition
	CustomResources           []crd.ResourceVerdict
	Objects                   []olmcore.Object
	ConfigMaps                []*corev1.ConfigMap
	PullSecrets               []*corev1.Secret
	CatalogSources            []*v1alpha1.CatalogSource
	LastRun                   olmcore.LastResults

	OLMNamespace, GlobalNamespace                      string
	OverwriteUnmanaged, CopyAnySecret, ChangeOwnedCRDs bool
	// SupportedKinds are the kinds besides those of the table Kinds that steps may have.
	SupportedKinds []string
	// Kinds is the table of kinds; nil for kinds.Known.
	Kinds kinds.Table
}

// world is an Input whose objects can be found, with what the steps say of each other.
type world struct {
	Input
	known   versions.Known
	crds    map[string]*apiextensionsv1.CustomResourceDefinition
	objects map[olmcore.Key]olmcore.Object
	// packages are those that a version is installed for; see packagesOf.
	packages map[string][]string
	// planned are the ClusterServiceVersions that steps make.
	planned map[string]bool
	// defining names the steps that will define a kind, as long as they are not done.
	defining map[schema.GroupKind]string
	literals map[manifest.Ref]literal
}

func newWorld(in Input) world {
	if in.Kinds == nil {
		in.Kinds = kinds.Known
	}
	w := world{
		Input: in,
		known: versions.Known{
			Namespace: in.Plan.Namespace, Announced: in.Announced, Here: map[string]*v1alpha1.ClusterServiceVersion{},
			Elsewhere: map[types.NamespacedName]*v1alpha1.ClusterServiceVersion{},
		},
		crds:    map[string]*apiextensionsv1.CustomResourceDefinition{},
		objects: map[olmcore.Key]olmcore.Object{},
		planned: map[string]bool{}, packages: packagesOf(in),
	}
	for _, csv := range in.ClusterServiceVersions {
		w.known.Here[csv.Name] = csv
	}
	for _, csv := range in.Alongside {
		w.known.Elsewhere[types.NamespacedName{Namespace: csv.Namespace, Name: csv.Name}] = csv
	}
	for _, crd := range in.CustomResourceDefinitions {
		w.crds[crd.Name] = crd
	}
	for _, o := range in.Objects {
		w.objects[olmcore.KeyOf(o)] = o
	}
	for _, s := range in.Subscriptions {
		w.objects[olmcore.KeyOf(s)] = s
	}
	for _, s := range in.Plan.Status.Plan {
		if s != nil && s.Resource.Kind == kinds.CSV {
			w.planned[s.Resource.Name] = true
		}
	}
	return w
}

// find returns the observed object of a key, nil when there is none.
func (w *world) find(key olmcore.Key) olmcore.Object {
	switch key.Kind {
	case kinds.CSV:
		if csv := w.known.Here[key.Name]; csv != nil {
			return csv
		}
		return nil
	case kinds.CRD:
		if crd := w.crds[key.Name]; crd != nil {
			return crd
		}
		return nil
	}
	return w.objects[key]
}

// describing returns the world in which the steps describe targets.
func (w world) describing(targets []*Target) world {
	w.known.Described = map[string]*v1alpha1.ClusterServiceVersion{}
	for _, t := range targets {
		if t.Key.Kind != kinds.CSV {
			continue
		}
		if o, err := typed(t, t.desired.Object); err == nil {
			w.known.Described[t.Key.Name] = o.(*v1alpha1.ClusterServiceVersion)
		}
	}
	return w
}

// described returns the ClusterServiceVersion that a target is, as its manifest has it.
func (w *world) described(t *Target) (*v1alpha1.ClusterServiceVersion, error) {
	if csv := w.known.Described[t.Key.Name]; csv != nil {
		return csv, nil
	}
	_, err := typed(t, t.desired.Object)
	return nil, err
}

// judged returns the world in which targets have their verdicts.
func (w world) judged(targets []*Target) world {
	w.defining = map[schema.GroupKind]string{}
	for _, t := range slices.Backward(targets) {
		if t.Key.Kind != kinds.CRD || t.Verdict.Outcome == Done {
			continue
		}
		spec, _ := t.desired.Object["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _ := names["kind"].(string)
		w.defining[schema.GroupKind{Group: group, Kind: kind}] = t.Key.Name
	}
	return w
}

// wrote reports that the last write of an object succeeded.
func (w *world) wrote(key olmcore.Key) bool {
	last, ran := w.LastRun[key]
	return ran && last.Class == olmcore.ClassNone
}

// identity is the account that writes objects of a kind, nil for the controller.
func (w *world) identity(k kinds.Kind) *corev1.ObjectReference {
	if k.ByController {
		return nil
	}
	return w.Plan.Status.AttenuatedServiceAccountRef
}
