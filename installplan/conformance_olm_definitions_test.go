// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestWhoOwnsTheDefinitionsOfAVersion that its plan does not name: it may be the
// version itself, and nobody else.
//
// OLM's cases: no version owns the definitions: fine; the version itself owns them: fine;
// another version owns one: refused; another version owns the second: refused; several
// own one: refused, and all are named.
func TestWhoOwnsTheDefinitionsOfAVersion(t *testing.T) {
	owner := func(name string, crds ...string) *v1alpha1.ClusterServiceVersion {
		return csv(name, func(c *v1alpha1.ClusterServiceVersion) {
			for _, crd := range crds {
				c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{Name: crd})
			}
		})
	}
	const (
		taken   = "pre-existing CRD owners found for owned CRD(s) of dependent CSV a.v1"
		several = "error checking crd owners for: a.v1: Existing CSVs [%s] in namespace ops all claim to own CRD one.example.com"
	)
	type versions = []*v1alpha1.ClusterServiceVersion
	going, copy := owner("b.v1", "one.example.com"), owner("b.v1", "one.example.com")
	going.DeletionTimestamp = ago(time.Second)
	copy.Labels = map[string]string{"olm.copiedFrom": "there"}
	for name, c := range map[string]struct {
		observed versions
		want     string
	}{
		"nobody":                      {},
		"somebody owns another one":   {observed: versions{owner("b.v1", "other.example.com")}},
		"only itself":                 {observed: versions{owner("a.v1", "one.example.com", "two.example.com")}},
		"one other":                   {observed: versions{owner("b.v1", "one.example.com")}, want: taken},
		"one other, of the second":    {observed: versions{owner("b.v1", "two.example.com")}, want: taken},
		"two others":                  {observed: versions{owner("c.v1", "one.example.com"), owner("b.v1", "one.example.com")}, want: fmt.Sprintf(several, "b.v1 c.v1")},
		"itself and another":          {observed: versions{owner("b.v1", "one.example.com"), owner("a.v1", "one.example.com")}, want: fmt.Sprintf(several, "a.v1 b.v1")},
		"one other that is going":     {observed: versions{going}},
		"a copy from somewhere else":  {observed: versions{copy}},
		"two others, of one each":     {observed: versions{owner("b.v1", "one.example.com"), owner("c.v1", "two.example.com")}, want: taken},
		"one that owns what it lacks": {observed: versions{owner("b.v1")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := step("a.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v1",
				`{"metadata":{"name":"a.v1"},"spec":{"customresourcedefinitions":{"owned":[{"name":"one.example.com"},{"name":"two.example.com"}]}}}`)
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second), func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"b.v1"} }))
			in.ClusterServiceVersions = olmcore.Found(c.observed...)
			r := reconcile(t, in)
			got := statusOf(in, r)
			if c.want == "" {
				require.Empty(t, got.Message)
				require.NotContains(t, reasons(r), installplan.ReasonStepRefused)
				return
			}
			require.Equal(t, []string{status}, describe(r))
			require.Equal(t, "retrying execution due to error: "+c.want, got.Message)

			// A plan that names the version is not asked when it is there, or in line.
			in.InstallPlan.Spec.ClusterServiceVersionNames = []string{"a.v1"}
			last := ""
			for _, v := range c.observed {
				if v.Name != "a.v1" {
					v.Spec.Replaces, last = last, v.Name
				}
			}
			in.InstallPlan.Status.Plan[0].Resource.Manifest = strings.Replace(s.Resource.Manifest, `"spec":{`, fmt.Sprintf(`"spec":{"replaces":%q,`, last), 1)
			require.NotContains(t, reasons(reconcile(t, in)), installplan.ReasonStepRefused)
		})
	}
}

// TestWhomADefinitionIsNotedFor: what its annotations say after an update.
//
// OLM's cases: a version that is gone is noted no more; nor is a copy; a version that
// lives stays noted; a step of no version notes none.
func TestWhomADefinitionIsNotedFor(t *testing.T) {
	const prefix = "operatorframework.io/installed-alongside-"
	copied := csv("b.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Namespace, c.Labels = "there", map[string]string{"olm.copiedFrom": "elsewhere"}
	})
	live := csv("b.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" })
	for name, c := range map[string]struct {
		resolving string
		have      []string
		observed  []olmcore.Object
		want      []string
	}{
		"nobody so far: the own version":        {resolving: "a.v1", want: []string{"ops/a.v1"}},
		"the own version again":                 {resolving: "a.v1", have: []string{"ops/a.v1"}, want: []string{"ops/a.v1"}},
		"a version that is gone":                {resolving: "a.v1", have: []string{"there/b.v1"}, want: []string{"ops/a.v1"}},
		"a version that is gone from here":      {resolving: "a.v1", have: []string{"ops/a.v0"}, want: []string{"ops/a.v1"}},
		"a copy of a version":                   {resolving: "a.v1", have: []string{"there/b.v1"}, observed: []olmcore.Object{copied}, want: []string{"ops/a.v1"}},
		"a version that lives":                  {resolving: "a.v1", have: []string{"there/b.v1"}, observed: []olmcore.Object{live}, want: []string{"ops/a.v1", "there/b.v1"}},
		"a version that lives here":             {resolving: "a.v1", have: []string{"ops/a.v0"}, observed: []olmcore.Object{csv("a.v0")}, want: []string{"ops/a.v0", "ops/a.v1"}},
		"what is no name of a version":          {resolving: "a.v1", have: []string{"b.v1", "/b.v1", "there/", "a/b/c"}, observed: []olmcore.Object{live}, want: []string{"ops/a.v1"}},
		"a step of no version adds none":        {have: []string{"there/b.v1"}, observed: []olmcore.Object{live}, want: []string{"there/b.v1"}},
		"a step of no version, nobody recorded": {},
	} {
		t.Run(name, func(t *testing.T) {
			have := installed(other(crdObject("v1"), 0), true)
			have.Labels = map[string]string{"olm.managed": "true"}
			have.Annotations = map[string]string{"theirs": "kept"}
			for _, value := range c.have {
				have.Annotations[prefix+alongsideHash(value)] = value
			}
			r := reconcile(t, input(plan(installing, []*v1alpha1.Step{crdStep(c.resolving, "v1")}, started(time.Second)), with(csv("a.v1"), have), with(c.observed...)))
			require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
			got := r.Actions[0].(olmcore.Update).After.GetAnnotations()
			require.NotEmpty(t, got[stepHash])
			want := map[string]string{"theirs": "kept", stepHash: got[stepHash]}
			for _, value := range c.want {
				want[prefix+alongsideHash(value)] = value
			}
			require.Equal(t, want, got)
		})
	}
}

// release is a definition whose versions are each "name", with "!" where it is
// stored and "-" where it is not served.
func release(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	var names []string
	for _, v := range versions {
		names = append(names, strings.Trim(v, "!-"))
	}
	crd := crdObject(names...)
	for i, v := range versions {
		crd.Spec.Versions[i].Storage, crd.Spec.Versions[i].Served = strings.Contains(v, "!"), !strings.Contains(v, "-")
	}
	return crd
}

func releaseStep(resolving string, versions ...string) *v1alpha1.Step {
	return step(resolving, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", release(versions...))
}

// versionsIn describes the definition of a cluster as release does.
func versionsIn(c *fake.Cluster) []string {
	var out []string
	for _, v := range fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "things.example.com").Spec.Versions {
		name := v.Name
		if v.Storage {
			name += "!"
		}
		if !v.Served {
			name += "-"
		}
		out = append(out, name)
	}
	return out
}

// TestReleasesOfADefinition one after the other: versions come, are stored, are
// served no more, and go only when nothing is stored in them any more.
//
// OLM's cases: a stored version that the new definition lacks is refused; all stored
// versions stay, another one comes: fine; compatible completes, incompatible or
// incomplete fails, deprecated completes; a version is deprecated over three releases;
// a lost stored version blocks until it is migrated.
func TestReleasesOfADefinition(t *testing.T) {
	lost := func(version string) string {
		return `risk of data loss updating "things.example.com": new CRD removes version ` + version + ` that is listed as a stored version on the existing CRD`
	}
	type versions = []string
	for name, c := range map[string]struct {
		releases []versions
		problem  string   // of the last release
		migrated versions // what status.storedVersions becomes then
	}{
		"a version is added":                           {releases: []versions{{"v1!"}, {"v1!", "v2"}}},
		"a version is added and stored":                {releases: []versions{{"v1!"}, {"v1", "v2!"}}},
		"a version is deprecated over three releases":  {releases: []versions{{"v1alpha1!"}, {"v1alpha1", "v1alpha2!"}, {"v1alpha1-", "v1alpha2!"}}},
		"what was stored and is not served stays":      {releases: []versions{{"v1!"}, {"v1-", "v2!"}}},
		"two were stored, both stay, one comes":        {releases: []versions{{"v1!"}, {"v1", "v2!"}, {"v1", "v2", "v3!"}}},
		"the stored version is missing":                {releases: []versions{{"v1alpha2!"}, {"v1alpha3!"}}, problem: lost("v1alpha2")},
		"an old stored version is missing":             {releases: []versions{{"v1alpha1!"}, {"v1alpha1", "v1alpha2!"}, {"v1alpha2!"}}, problem: lost("v1alpha1")},
		"a version that was never stored may go":       {releases: []versions{{"v1!", "v2"}, {"v1!"}}},
		"the stored version is missing, then migrated": {releases: []versions{{"v1alpha1!"}, {"v1alpha1", "v1alpha2!"}, {"v1alpha2!"}}, problem: lost("v1alpha1"), migrated: versions{"v1alpha2"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := world(t, userSubscription("a"))
			var p *v1alpha1.InstallPlan
			for i, r := range c.releases {
				if i > 0 && p.Status.Phase != complete {
					t.Fatal(p.Status.Message)
				}
				p = executed(t, cluster, fmt.Sprintf("install-%d", i), releaseStep("a.v1", r...))
			}
			last := c.releases[len(c.releases)-1]
			if c.problem == "" {
				require.Equal(t, complete, p.Status.Phase, p.Status.Message)
				require.Equal(t, last, versionsIn(cluster))
				return
			}
			require.Equal(t, failed, p.Status.Phase)
			require.Equal(t, c.problem, p.Status.Message)
			require.Equal(t, c.releases[len(c.releases)-2], versionsIn(cluster), "nothing was written")
			if c.migrated == nil {
				return
			}
			crd := fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", "things.example.com").DeepCopy()
			crd.Status.StoredVersions = c.migrated
			require.NoError(t, cluster.UpdateStatus(crd))
			p = executed(t, cluster, "install-again", releaseStep("a.v1", last...))
			require.Equal(t, complete, p.Status.Phase, p.Status.Message)
			require.Equal(t, last, versionsIn(cluster))
		})
	}
}

// TestADefinitionIsWritten for whoever needs it, owned or not, with its schema
// whole, and says for whom.
//
// OLM's cases: a definition is made, with the label; what another version provides
// already is not installed again; the only owner's definition is updated; so is one
// that nobody owns; a minimum in a schema arrives.
func TestADefinitionIsWritten(t *testing.T) {
	bounded := func(minimum float64) *apiextensionsv1.CustomResourceDefinition {
		crd := release("v1!")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer", Minimum: &minimum, Maximum: new(256.0)}}
		return crd
	}
	owning := func(name string) *v1alpha1.ClusterServiceVersion {
		return csv(name, func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things.example.com", Kind: "Thing", Version: "v1"}}
		})
	}
	ours, users := bounded(1), bounded(1)
	ours.Labels = map[string]string{"olm.managed": "true"}
	users.Labels = map[string]string{"olm.managed": "true"}
	ours.Annotations = map[string]string{"operatorframework.io/installed-alongside-" + alongsideHash("ops/a.v0"): "ops/a.v0"}
	for name, c := range map[string]struct {
		existing []olmcore.Object
		noted    []string
	}{
		"where there was none":                    {noted: []string{"ops/a.v1"}},
		"that its only owner had":                 {existing: []olmcore.Object{owning("a.v0"), ours}, noted: []string{"ops/a.v0", "ops/a.v1"}},
		"that another version had":                {existing: []olmcore.Object{owning("b.v1"), ours}, noted: []string{"ops/a.v1"}},
		"that was handed to OLM, and nobody owns": {existing: []olmcore.Object{users}, noted: []string{"ops/a.v1"}},
		"whose version is there already":          {existing: []olmcore.Object{owning("a.v1")}, noted: []string{"ops/a.v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := world(t, c.existing...)
			p := executed(t, cluster, "install-x", csvStep("a.v1"), step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", bounded(2)))
			require.Equal(t, complete, p.Status.Phase, p.Status.Message)
			got := fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", "things.example.com")
			same(t, bounded(2).Spec.Versions, got.Spec.Versions)
			require.Equal(t, map[string]string{"olm.managed": "true"}, got.Labels)
			require.Empty(t, got.OwnerReferences)
			var noted []string
			for key, value := range got.Annotations {
				if strings.HasPrefix(key, "operatorframework.io/installed-alongside-") {
					noted = append(noted, value)
				}
			}
			slices.Sort(noted)
			require.Equal(t, c.noted, noted)
		})
	}
}

// TestTwoPlansShareADefinition: it is noted for both versions, and the second plan
// writes nothing else.
//
// OLM's case: two plans share a definition: both versions are noted.
func TestTwoPlansShareADefinition(t *testing.T) {
	c := world(t)
	require.Equal(t, complete, executed(t, c, "install-1", csvStep("a.v1"), releaseStep("a.v1", "v1!")).Status.Phase)
	before := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "things.example.com").DeepCopy()
	require.Equal(t, complete, executed(t, c, "install-2", csvStep("b.v1"), releaseStep("b.v1", "v1!")).Status.Phase)
	after := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "things.example.com").DeepCopy()
	require.Equal(t, "ops/a.v1", after.Annotations["operatorframework.io/installed-alongside-"+alongsideHash("ops/a.v1")])
	require.Equal(t, "ops/b.v1", after.Annotations["operatorframework.io/installed-alongside-"+alongsideHash("ops/b.v1")])
	delete(after.Annotations, "operatorframework.io/installed-alongside-"+alongsideHash("ops/b.v1"))
	before.ObjectMeta.ResourceVersion, after.ObjectMeta.ResourceVersion = "", ""
	same(t, before.ObjectMeta, after.ObjectMeta)
	same(t, before.Spec, after.Spec)
}
