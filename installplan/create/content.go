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
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// content is what a plan of a resolution installs.
type content struct {
	steps []*v1alpha1.Step
	// lookups are the images that steps refer to the unpacked bundles of.
	lookups []v1alpha1.BundleLookup
	// account is the one that the plan is made under; empty for none.
	account string
	hash    string
	// refused is why no plan can be made of it; zero if one can.
	refused olmcore.Cause
}

// contentOf returns the content of the whole resolution, the images that must be unpacked first, and why an operator
// cannot be installed yet.
func contentOf(in Input) (c content, pending []v1alpha1.BundleLookup, problems []olmcore.Diagnostic) {
	refuse := func(of []string, format string, args ...any) {
		problem := in.diagnose(of, olmcore.Error, ReasonBundleInvalid, "%s", report.Clip(fmt.Sprintf(format, args...)))
		problems = append(problems, problem)
		message := strings.TrimPrefix(c.refused.Message+"; "+problem.Message, "; ")
		c.refused = olmcore.Cause{Reason: ReasonErrorPreventedUnpacking, Message: message}
	}
	operators := slices.Clone(in.Resolution.Operators)
	slices.SortStableFunc(operators, func(a, b olmcore.Operator) int { return strings.Compare(a.Name, b.Name) })
	unpacked := fromImages(in.Resolution, in.Namespace, in.Config)
	for _, o := range operators {
		write := bundle.Literal
		if unpacked[o.Name] {
			lookup, err := bundle.NewLookup(o, in.Now)
			cm := configMapOf(in, o)
			content, complete := bundle.Complete(cm, o.Bundle.Image)
			if !complete {
				problems = append(problems, in.diagnose(o.For, olmcore.Warning, ReasonBundleNotUnpacked,
					"operator %s: the objects of bundle image %s are not known", o.Name, o.Bundle.Image))
				if err == nil {
					pending = append(pending, lookup)
				}
				continue
			}
			lookup.Conditions = nil
			c.lookups = append(c.lookups, lookup)
			o.Bundle.Objects, write = content.Bundle.Objects, references(cm, content.Digest, o)
		}
		steps, err := bundle.Steps(o, in.Namespace, write)
		if err != nil {
			refuse(o.For, "%s", err)
		}
		c.steps = append(c.steps, steps...)
	}
	for _, s := range input.ByName(in.Resolution.Generated) {
		step, err := subscriptionStep(s, in.Namespace)
		if err != nil {
			refuse(nil, "Subscription %s: %s", s.Name, err)
			continue
		}
		c.steps = append(c.steps, step)
	}
	slices.SortStableFunc(c.steps, func(a, b *v1alpha1.Step) int { // the steps of one operator keep their order
		return cmp.Or(cmp.Compare(kinds.OrderOf(a), kinds.OrderOf(b)), strings.Compare(a.Resolving, b.Resolving))
	})
	c.account = relation.PrescribedAccount(in.OperatorGroups.Items)
	c.hash = contentHash(in.Namespace, c.account, c.steps)
	return c, pending, problems
}

// configMapOf returns the ConfigMap that an operator's bundle image is unpacked into, nil for none.
func configMapOf(in Input, o olmcore.Operator) *corev1.ConfigMap {
	name := bundle.Name(o.Bundle.Image)
	for _, cm := range in.ConfigMaps.Items {
		if cm.Namespace == o.Catalog.Namespace && cm.Name == name {
			return cm
		}
	}
	return nil
}

// references are manifests that refer to the ConfigMap that holds the bundle. The properties go with the
// ClusterServiceVersion alone, which uses them; a plan must fit into one object.
func references(cm *corev1.ConfigMap, digest string, o olmcore.Operator) bundle.Manifest {
	return func(object olmcore.Object, _ bool) (string, error) {
		ref := manifest.Ref{Digest: digest, Source: manifest.Source{
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
	text, err := manifest.Encode(values)
	if err != nil {
		return nil, err
	}
	return bundle.NewStep(s.Spec.StartingCSV, s, text, types.NamespacedName{Namespace: s.Spec.CatalogSourceNamespace, Name: s.Spec.CatalogSource})
}

// contentHash identifies what a plan installs: the namespace, the versions, the steps, whatever their order, and the
// account under which it is made. Who owns the plan, who must approve it and how far it is are no part of it.
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

// versionsOf returns the ClusterServiceVersions of steps, in their order and each once; never nil, as the API requires
// the list.
func versionsOf(steps []*v1alpha1.Step) []string {
	names := []string{}
	for _, s := range steps {
		if s.Resource.Kind == kinds.CSV && !slices.Contains(names, s.Resource.Name) {
			names = append(names, s.Resource.Name)
		}
	}
	return names
}

// catalogsOf returns the CatalogSources of steps, sorted; never nil.
func catalogsOf(steps []*v1alpha1.Step) []string {
	names := sets.New[string]()
	for _, s := range steps {
		names.Insert(s.Resource.CatalogSource)
	}
	return sets.List(names.Delete(""))
}
