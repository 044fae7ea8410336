// SPDX-License-Identifier: Apache-2.0

package create

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// content contains the steps of the plan of a resolution, and the problems that prevent the plan.
type content struct {
	steps []*v1alpha1.Step
	// lookups contains the images of the unpacked bundles that steps reference.
	lookups []v1alpha1.BundleLookup
	// pending contains the images that must be unpacked before the plan is created.
	pending []v1alpha1.BundleLookup
	// problems explains why operators cannot be installed yet.
	problems []olmcore.Diagnostic
	// refused explains why no plan can be created. It is zero if a plan is possible.
	refused olmcore.Cause
	// account is the ServiceAccount that installs the plan, or empty.
	account string
	hash    string
}

// contentOf returns the content of the whole resolution.
func contentOf(in *Input) (c content) {
	operators := slices.Clone(in.Resolution.Operators)
	slices.SortStableFunc(operators, func(a, b olmcore.Operator) int { return strings.Compare(a.Name, b.Name) })
	unpacked := fromImages(in.Resolution, in.Namespace, in.Config)
	var parts []content
	for _, o := range operators {
		if unpacked[o.Name] {
			parts = append(parts, contentOfImage(in, o))
		} else {
			parts = append(parts, contentOfOperator(in, o, bundle.Literal))
		}
	}
	for _, s := range inputs.ByName(in.Resolution.Generated) {
		parts = append(parts, contentOfSubscription(in, s))
	}
	c = c.and(parts...)
	slices.SortStableFunc(c.steps, func(a, b *v1alpha1.Step) int { // the steps of one operator keep their order
		return cmp.Or(cmp.Compare(kinds.OrderOf(a), kinds.OrderOf(b)), strings.Compare(a.Resolving, b.Resolving))
	})
	c.account = relation.PrescribedAccount(in.OperatorGroups.Items)
	c.hash = contentHash(in.Namespace, c.account, c.steps)
	return c
}

// and returns the content of c and of the others, without account and hash.
func (c content) and(others ...content) content {
	// append copies a clipped slice, so it never writes to the arrays of c.
	c.steps = slices.Clip(c.steps)
	c.lookups = slices.Clip(c.lookups)
	c.pending = slices.Clip(c.pending)
	c.problems = slices.Clip(c.problems)
	for _, other := range others {
		c.steps = append(c.steps, other.steps...)
		c.lookups = append(c.lookups, other.lookups...)
		c.pending = append(c.pending, other.pending...)
		c.problems = append(c.problems, other.problems...)
		if other.refused != (olmcore.Cause{}) {
			message := strings.TrimPrefix(c.refused.Message+"; "+other.refused.Message, "; ")
			c.refused = olmcore.Cause{Reason: other.refused.Reason, Message: message}
		}
	}
	return c
}

// contentOfOperator returns the content of one operator, with manifests as write encodes them.
func contentOfOperator(in *Input, o olmcore.Operator, write bundle.EncodeStep) content {
	steps, err := bundle.Steps(o, in.Namespace, write)
	if err != nil {
		return content{steps: steps}.and(refuse(in, o.For, err.Error()))
	}
	return content{steps: steps}
}

// contentOfImage returns the content of an operator whose objects come from its unpacked bundle image.
func contentOfImage(in *Input, o olmcore.Operator) content {
	lookup, err := bundle.NewLookup(o, in.Now)
	cm := configMapOf(in, o)
	unpacked, complete := bundle.Complete(cm, o.Bundle.Image)
	if !complete {
		c := content{problems: []olmcore.Diagnostic{in.diagnose(o.For, olmcore.Warning, ReasonBundleNotUnpacked,
			"operator %s: the objects of bundle image %s are not known", o.Name, o.Bundle.Image)}}
		if err == nil {
			c.pending = []v1alpha1.BundleLookup{lookup}
		}
		return c
	}
	lookup.Conditions = nil
	o.Bundle.Objects = unpacked.Bundle.Objects
	c := content{lookups: []v1alpha1.BundleLookup{lookup}}
	return c.and(contentOfOperator(in, o, references(cm, unpacked.Digest, o)))
}

// contentOfSubscription returns the step that creates the Subscription of a dependency.
func contentOfSubscription(in *Input, s *v1alpha1.Subscription) content {
	step, err := subscriptionStep(s, in.Namespace)
	if err != nil {
		return refuse(in, nil, fmt.Sprintf("Subscription %s: %s", s.Name, err))
	}
	return content{steps: []*v1alpha1.Step{step}}
}

// refuse returns the content of a bundle that cannot be installed. of names the Subscriptions that it is for.
func refuse(in *Input, of []string, message string) content {
	problem := in.diagnose(of, olmcore.Error, ReasonBundleInvalid, "%s", printable.Clip(message))
	return content{
		problems: []olmcore.Diagnostic{problem},
		refused:  olmcore.Cause{Reason: ReasonErrorPreventedUnpacking, Message: problem.Message},
	}
}

// configMapOf returns the ConfigMap with the unpacked bundle image of an operator, or nil.
func configMapOf(in *Input, o olmcore.Operator) *corev1.ConfigMap {
	name := bundle.Name(o.Bundle.Image)
	for _, cm := range in.ConfigMaps.Items {
		if cm.Namespace == o.Catalog.Namespace && cm.Name == name {
			return cm
		}
	}
	return nil
}

// references returns a function for manifests that reference the ConfigMap with the unpacked bundle. Only the manifest
// of the ClusterServiceVersion contains the properties, so that the plan fits into one object.
func references(cm *corev1.ConfigMap, digest string, o olmcore.Operator) bundle.EncodeStep {
	return func(object olmcore.Object, _ bool) (string, error) {
		ref := bundle.Reference{Digest: digest, Source: bundle.Source{
			Kind: "ConfigMap", Name: cm.Name, Namespace: cm.Namespace,
			CatalogSourceName: o.Catalog.Name, CatalogSourceNamespace: o.Catalog.Namespace, Replaces: o.Replaces,
		}}
		var err error
		if olmcore.GVKOf(object).Kind == kinds.CSV {
			if ref.Properties, err = bundle.EncodeProperties(o.Bundle.Properties); err != nil {
				return "", err
			}
		}
		data, err := json.Marshal(ref)
		return string(data), err
	}
}

// subscriptionStep returns the step that creates the Subscription of a dependency.
func subscriptionStep(s *v1alpha1.Subscription, namespace string) (*v1alpha1.Step, error) {
	s = s.DeepCopy()
	s.Namespace, s.Status = namespace, v1alpha1.SubscriptionStatus{}
	values, err := olmcore.ToMap(s)
	if err != nil {
		return nil, err
	}
	delete(values, "status")
	text, err := bundle.EncodeManifest(values)
	if err != nil {
		return nil, err
	}
	catalog := types.NamespacedName{Namespace: s.Spec.CatalogSourceNamespace, Name: s.Spec.CatalogSource}
	return bundle.NewStep(s.Spec.StartingCSV, s, text, catalog)
}

// contentHash returns the hash of what a plan installs: the namespace, the versions, the steps in any order, and the
// ServiceAccount. Owners, approval and progress of a plan do not change its hash.
func contentHash(namespace, account string, steps []*v1alpha1.Step) string {
	type content struct { // fields in alphabetical order, so that their JSON is canonical
		Group           string `json:"group"`
		Kind            string `json:"kind"`
		Manifest        string `json:"manifest"`
		Name            string `json:"name"`
		SourceName      string `json:"sourceName"`
		SourceNamespace string `json:"sourceNamespace"`
		Version         string `json:"version"`
	}
	names := versionsOf(steps)
	slices.Sort(names)
	contents := make([]content, len(steps))
	for i, s := range steps {
		r := s.Resource
		contents[i] = content{r.Group, r.Kind, r.Manifest, r.Name, r.CatalogSource, r.CatalogSourceNamespace, r.Version}
	}
	slices.SortFunc(contents, func(a, b content) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Manifest, b.Manifest), strings.Compare(a.SourceName, b.SourceName),
			strings.Compare(a.SourceNamespace, b.SourceNamespace))
	})
	data, _ := olmcore.CanonicalJSON(struct { // strings always encode
		CSVs      []string  `json:"csvs"`
		Lookups   []content `json:"lookups"`
		Namespace string    `json:"namespace"`
		Steps     []content `json:"steps"`
	}{names, []content{}, namespace, contents})
	hash := fmt.Sprintf("%x", sha256.Sum256(data))
	if account != "" {
		hash = fmt.Sprintf("%x", sha256.Sum256([]byte(hash+"\n"+account)))
	}
	return hash
}

// versionsOf returns the distinct ClusterServiceVersions of steps, in their order. The API requires the list, so it is
// never nil.
func versionsOf(steps []*v1alpha1.Step) []string {
	names := []string{}
	for _, s := range steps {
		if s.Resource.Kind == kinds.CSV && !slices.Contains(names, s.Resource.Name) {
			names = append(names, s.Resource.Name)
		}
	}
	return names
}

// catalogsOf returns the sorted CatalogSources of steps. It is never nil.
func catalogsOf(steps []*v1alpha1.Step) []string {
	names := sets.New[string]()
	for _, s := range steps {
		names.Insert(s.Resource.CatalogSource)
	}
	return sets.List(names.Delete(""))
}
