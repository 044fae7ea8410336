// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/component"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestObjectsAreMadeWithTheirComponentLabels: each object has one writer while an
// operator is installed and upgraded, so no write conflicts with another one.
func TestObjectsAreMadeWithTheirComponentLabels(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 2*time.Minute)
	w.requireInstalled(t, "alpha")
	w.heads["alpha"] = 2
	w.poke(t)
	w.run(t, 2*time.Minute)
	require.Equal(t, "alpha.v2.0.0 Succeeded", w.phases())

	for _, e := range w.driver.Events {
		if e.Action == nil || e.Controller != controllers.Subscription {
			continue
		}
		verb, target, cause := e.Action.Describe()
		if cause.Reason == component.ReasonLabelMissing {
			require.Equal(t, "Subscription", target.Kind, "%s %s", verb, target)
		}
	}
	key, err := olmcore.ComponentLabelKey("alpha", namespace)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, o := range w.cluster.Objects() {
		if kind := olmcore.KeyOf(o).Kind; kind != "" {
			_, labelled := o.GetLabels()[key]
			found[kind] = found[kind] || labelled
		}
	}
	for _, kind := range []string{"ClusterServiceVersion", "Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "InstallPlan", "Subscription"} {
		require.True(t, found[kind], kind)
	}
}

// named is a world in which some names are odd.
type named struct {
	pkg, channel, csv, catalog, group, subscription string
	// required is the name of a package and its channel that the package requires.
	required string
}

func (n named) start(t *testing.T) *world {
	w := newWorld(t)
	w.olm = &olm.OLM{Options: controllers.Options{KubernetesVersion: "v1.36.2", Sweeps: true, Operators: true}}
	packageNamed := func(name, channel, csv, content string) resolution.Package {
		p := packageOf(content, resolution.ChannelEntry{Name: csv})
		p.Name, p.DefaultChannel, p.Channels[0].Name = name, channel, channel
		quoted, err := json.Marshal(name)
		require.NoError(t, err)
		p.Bundles[0].Properties[0].Value = json.RawMessage(fmt.Sprintf(`{"packageName":%s,"version":"1.0.0"}`, quoted))
		objects := slices.Clone(p.Bundles[0].Objects)
		objects[0] = objects[0].DeepCopyObject().(olmcore.Object)
		objects[0].SetName(csv)
		p.Bundles[0].Objects = objects
		return p
	}
	content := []resolution.Package{packageNamed(n.pkg, n.channel, n.csv, "alpha")}
	if n.required != "" {
		quoted, err := json.Marshal(n.required)
		require.NoError(t, err)
		content[0].Bundles[0].Properties = append(content[0].Bundles[0].Properties, olmcore.Property{
			Type: "olm.package.required", Value: json.RawMessage(fmt.Sprintf(`{"packageName":%s,"versionRange":">=1.0.0"}`, quoted))})
		content = append(content, packageNamed(n.required, n.required, csvName("beta", 1), "beta"))
	}
	catalog, problems := resolution.Build(content)
	require.Empty(t, problems)
	key := types.NamespacedName{Namespace: "olm", Name: n.catalog}
	catalogs := controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{key: catalog}}
	catalogs.Serve(&w.olm.Options)
	w.driver = &fake.Driver{Cluster: w.cluster, Controllers: w.olm.Controllers()}
	source := fake.Find[*v1alpha1.CatalogSource](w.cluster, "olm", "community").DeepCopy()
	group := fake.Find[*operatorsv1.OperatorGroup](w.cluster, namespace, "group").DeepCopy()
	require.NoError(t, w.cluster.Delete(olmcore.RefOf(source).Unversioned()))
	require.NoError(t, w.cluster.Delete(olmcore.RefOf(group).Unversioned()))
	source.ObjectMeta = metav1.ObjectMeta{Namespace: "olm", Name: n.catalog}
	group.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: n.group}
	require.NoError(t, w.cluster.Create(source, group, &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: n.subscription},
		Spec: &v1alpha1.SubscriptionSpec{Package: n.pkg, Channel: n.channel, CatalogSource: n.catalog, CatalogSourceNamespace: "olm",
			InstallPlanApproval: v1alpha1.ApprovalAutomatic},
	}))
	return w
}

// TestOddNames checks names of packages, channels, versions and other objects from which names and labels of objects
// derive. The API server accepts each write, or the library does not make it and reports that once. Then the world is
// at rest.
func TestOddNames(t *testing.T) {
	odd := map[string]string{
		"capitals": "AlPha", "an underscore": "al_pha", "dots": "al.pha.x", "two dots": "al..pha", "a dash at the end": "alpha-",
		"a dash first": "-alpha", "a slash": "al/pha", "a space": "al pha", "unicode": "älphå", "64 characters": strings.Repeat("a", 64),
		"300 characters": strings.Repeat("a", 300), "300 characters, unicode": strings.Repeat("å", 150),
	}
	valid := map[string]string{
		"dots": "al.pha.x", "64 characters": strings.Repeat("a", 64), "253 characters": strings.Repeat("a", 253),
		"253 characters and dots": strings.Repeat("a.", 126) + "a",
	}
	unwritable := map[string]string{
		"capitals": "OperatorNameInvalid", "an underscore": "OperatorNameInvalid", "two dots": "OperatorNameInvalid",
		"a dash at the end": "OperatorNameInvalid",
		"a dash first":      "LabelKeyInvalid", "a slash": "LabelKeyInvalid", "a space": "LabelKeyInvalid", "unicode": "LabelKeyInvalid",
		"300 characters, unicode": "LabelKeyInvalid",
	}
	tooLong := map[string]string{
		"64 characters": "GroupNameTooLong", "253 characters": "GroupNameTooLong", "253 characters and dots": "GroupNameTooLong",
	}
	for of, c := range map[string]struct {
		names map[string]string
		set   func(n *named, name string)
		// reported is the reason of what is reported for a name, empty if all is written.
		reported map[string]string
	}{
		"package":          {odd, func(n *named, name string) { n.pkg = name }, unwritable},
		"channel":          {odd, func(n *named, name string) { n.channel = name }, nil},
		"version":          {odd, func(n *named, name string) { n.csv = name }, nil},
		"required package": {odd, func(n *named, name string) { n.required = name }, unwritable},
		"catalog":          {valid, func(n *named, name string) { n.catalog = name }, nil},
		"OperatorGroup":    {valid, func(n *named, name string) { n.group = name }, tooLong},
		"Subscription":     {valid, func(n *named, name string) { n.subscription = name }, nil},
	} {
		for kind, name := range c.names {
			t.Run(of+" with "+kind, func(t *testing.T) {
				n := named{pkg: "alpha", channel: "stable", csv: csvName("alpha", 1), catalog: "community", group: "group", subscription: "alpha"}
				c.set(&n, name)
				w := n.start(t)
				require.NoError(t, w.driver.RunFor(t.Context(), 20*time.Minute))
				reports := map[string]int{}
				for _, e := range w.driver.Events {
					require.NotEqual(t, olmcore.Invalid, olmcore.Classify(e.Err), "%s", e)
					if e.Diagnostic != nil {
						reports[e.Diagnostic.Reason]++
					}
				}
				if of != "version" { // such a version cannot be created
					require.Contains(t, w.phases(), "Succeeded")
				} else if w.phases() == "" {
					require.NotZero(t, reports["StepRefused"])
				}
				for _, reason := range []string{"OperatorNameInvalid", "LabelKeyInvalid", "LabelImpossible", "GroupNameTooLong", "SpecInvalid"} {
					require.LessOrEqual(t, reports[reason], 1, reason)
				}
				require.Equal(t, c.reported[kind], firstOf(reports, "OperatorNameInvalid", "LabelKeyInvalid", "GroupNameTooLong"))

				// At rest nothing is written, tried or reported again.
				touch := func(s *v1alpha1.Subscription) { s.Annotations = map[string]string{"touched": "yes"} }
				require.NoError(t, fake.Edit(w.cluster, namespace, n.subscription, touch))
				before := w.cluster.ResourceVersion()
				w.driver.Events = nil
				require.NoError(t, w.driver.RunFor(t.Context(), time.Hour))
				require.Equal(t, before, w.cluster.ResourceVersion(), controller.Format(w.driver.Events))
				require.Empty(t, controller.Format(w.driver.Events))
			})
		}
	}
}

// firstOf returns the first of some reasons that was reported.
func firstOf(reports map[string]int, reasons ...string) string {
	for _, reason := range reasons {
		if reports[reason] > 0 {
			return reason
		}
	}
	return ""
}
