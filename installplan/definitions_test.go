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
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// release returns a definition with versions in the form "name". A stored version ends with "!", and one that is not
// served ends with "-".
func release(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	var names []string
	for _, v := range versions {
		names = append(names, strings.Trim(v, "!-"))
	}
	crd := CRDObject(names...)
	for i, v := range versions {
		crd.Spec.Versions[i].Storage, crd.Spec.Versions[i].Served = strings.Contains(v, "!"), !strings.Contains(v, "-")
	}
	return crd
}

func releaseStep(resolving string, versions ...string) *v1alpha1.Step {
	return Step(resolving, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", release(versions...))
}

// versionsIn returns the versions of the definition of a cluster in the form of release.
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

// TestVersionIsRefusedIfAnotherOwnsItsDefinitions checks a version that spec does not name. Only the version itself may
// own its definitions. It includes OLM's cases.
func TestVersionIsRefusedIfAnotherOwnsItsDefinitions(t *testing.T) {
	owner := func(name string, crds ...string) *v1alpha1.ClusterServiceVersion {
		return CSV(name, func(c *v1alpha1.ClusterServiceVersion) {
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
	going.DeletionTimestamp = Ago(time.Second)
	copy.Labels = map[string]string{"olm.copiedFrom": "there"}
	for name, c := range map[string]struct {
		observed versions
		want     string
	}{
		"no version owns one":               {},
		"a version owns another definition": {observed: versions{owner("b.v1", "other.example.com")}},
		"only itself":                       {observed: versions{owner("a.v1", "one.example.com", "two.example.com")}},
		"one other":                         {observed: versions{owner("b.v1", "one.example.com")}, want: taken},
		"one other, of the second":          {observed: versions{owner("b.v1", "two.example.com")}, want: taken},
		"two others": {
			observed: versions{owner("c.v1", "one.example.com"), owner("b.v1", "one.example.com")}, want: fmt.Sprintf(several, "b.v1 c.v1"),
		},
		"itself and another": {
			observed: versions{owner("b.v1", "one.example.com"), owner("a.v1", "one.example.com")}, want: fmt.Sprintf(several, "a.v1 b.v1"),
		},
		"one other that is being deleted": {observed: versions{going}},
		"a copy from somewhere else":      {observed: versions{copy}},
		"two others, each of one definition": {
			observed: versions{owner("b.v1", "one.example.com"), owner("c.v1", "two.example.com")}, want: taken,
		},
		"one that owns a definition that it does not": {observed: versions{owner("b.v1")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Step("a.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v1",
				`{"metadata":{"name":"a.v1"},"spec":{"customresourcedefinitions":{"owned":[{"name":"one.example.com"},{"name":"two.example.com"}]}}}`)
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second), func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{"b.v1"} }))
			in.ClusterServiceVersions = olmcore.Found(c.observed...)
			r := reconcile(t, in)
			got := statusOf(in, r)
			if c.want == "" {
				require.Empty(t, got.Message)
				require.NotContains(t, Reasons(r), installplan.ReasonStepRefused)
				return
			}
			require.Equal(t, []string{status}, Describe(r))
			require.Equal(t, "retrying execution due to error: "+c.want, got.Message)

			// A plan whose spec names the version ignores other owners if the version exists or is in their upgrade chain.
			in.InstallPlan.Spec.ClusterServiceVersionNames = []string{"a.v1"}
			last := ""
			for _, v := range c.observed {
				if v.Name != "a.v1" {
					v.Spec.Replaces, last = last, v.Name
				}
			}
			in.InstallPlan.Status.Plan[0].Resource.Manifest = strings.Replace(s.Resource.Manifest, `"spec":{`, fmt.Sprintf(`"spec":{"replaces":%q,`, last), 1)
			require.NotContains(t, Reasons(reconcile(t, in)), installplan.ReasonStepRefused)
		})
	}
}

// TestDefinitionRecordsExistingVersions checks the annotations of a definition after an update. It includes OLM's
// cases.
func TestDefinitionRecordsExistingVersions(t *testing.T) {
	const prefix = "operatorframework.io/installed-alongside-"
	copied := CSV("b.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Namespace, c.Labels = "there", map[string]string{"olm.copiedFrom": "elsewhere"}
	})
	live := CSV("b.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" })
	for name, c := range map[string]struct {
		resolving string
		have      []string
		observed  []olmcore.Object
		want      []string
		first     string
	}{
		"no version is recorded":                       {resolving: "a.v1", want: []string{"ops/a.v1"}},
		"the own version again":                        {resolving: "a.v1", have: []string{"ops/a.v1"}, want: []string{"ops/a.v1"}},
		"a version that was deleted":                   {resolving: "a.v1", have: []string{"there/b.v1"}, want: []string{"ops/a.v1"}},
		"a version of this namespace that was deleted": {resolving: "a.v1", have: []string{"ops/a.v0"}, want: []string{"ops/a.v1"}},
		"a copy of a version": {
			resolving: "a.v1", have: []string{"there/b.v1"}, observed: []olmcore.Object{copied}, want: []string{"ops/a.v1"},
		},
		"a version that exists": {
			resolving: "a.v1", have: []string{"there/b.v1"}, observed: []olmcore.Object{live},
			want: []string{"ops/a.v1", "there/b.v1"}, first: "there",
		},
		"a version of this namespace that exists": {
			resolving: "a.v1", have: []string{"ops/a.v0"}, observed: []olmcore.Object{CSV("a.v0")}, want: []string{"ops/a.v0", "ops/a.v1"},
		},
		"invalid names of versions": {
			resolving: "a.v1", have: []string{"b.v1", "/b.v1", "there/", "a/b/c"}, observed: []olmcore.Object{live}, want: []string{"ops/a.v1"},
		},
		"a step of no version adds none":        {have: []string{"there/b.v1"}, observed: []olmcore.Object{live}, want: []string{"there/b.v1"}},
		"a step of no version, without records": {},
	} {
		t.Run(name, func(t *testing.T) {
			have := Installed(other(CRDObject("v1"), 0), true)
			have.Labels = map[string]string{"olm.managed": "true", "theirs": "kept"}
			have.Annotations = map[string]string{"theirs": "kept"}
			for _, value := range c.have {
				have.Annotations[prefix+alongsideHash(value)] = value
			}
			r := reconcile(t, input(Plan(Installing, []*v1alpha1.Step{CRDStep(c.resolving, "v1")}, Started(time.Second)), with(CSV("a.v1"), have), with(c.observed...)))
			require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
			require.Equal(t, have.Labels, r.Actions[0].(olmcore.Update).After.GetLabels())
			got := r.Actions[0].(olmcore.Update).After.GetAnnotations()
			require.NotEmpty(t, got[stepHash])
			want := map[string]string{"theirs": "kept", stepHash: got[stepHash]}
			for _, value := range c.want {
				want[prefix+alongsideHash(value)] = value
			}
			if c.first != "" {
				want[firstInstalledBy] = c.first
			}
			require.Equal(t, want, got)
		})
	}
}

// TestVersionsOfADefinitionAreAddedAndRemoved checks that versions are added, stored, no longer served, and removed
// only once no object is stored in them. It includes OLM's cases.
func TestVersionsOfADefinitionAreAddedAndRemoved(t *testing.T) {
	lost := func(version string) string {
		return `risk of data loss updating "things.example.com": new CRD removes version ` + version + ` that is listed as a stored version on the existing CRD`
	}
	type versions = []string
	for name, c := range map[string]struct {
		releases []versions
		problem  string   // of the last release
		migrated versions // what status.storedVersions becomes then
	}{
		"a version is added":            {releases: []versions{{"v1!"}, {"v1!", "v2"}}},
		"a version is added and stored": {releases: []versions{{"v1!"}, {"v1", "v2!"}}},
		"a version is deprecated over three releases": {
			releases: []versions{{"v1alpha1!"}, {"v1alpha1", "v1alpha2!"}, {"v1alpha1-", "v1alpha2!"}},
		},
		"what was stored and is not served stays": {releases: []versions{{"v1!"}, {"v1-", "v2!"}}},
		"two were stored, both stay, one comes":   {releases: []versions{{"v1!"}, {"v1", "v2!"}, {"v1", "v2", "v3!"}}},
		"the stored version is missing":           {releases: []versions{{"v1alpha2!"}, {"v1alpha3!"}}, problem: lost("v1alpha2")},
		"an old stored version is missing": {
			releases: []versions{{"v1alpha1!"}, {"v1alpha1", "v1alpha2!"}, {"v1alpha2!"}}, problem: lost("v1alpha1"),
		},
		"a version that was never stored may go": {releases: []versions{{"v1!", "v2"}, {"v1!"}}},
		"the stored version is missing, then migrated": {
			releases: []versions{{"v1alpha1!"}, {"v1alpha1", "v1alpha2!"}, {"v1alpha2!"}}, problem: lost("v1alpha1"), migrated: versions{"v1alpha2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := World(t, UserSubscription("a"))
			var p *v1alpha1.InstallPlan
			for i, r := range c.releases {
				if i > 0 && p.Status.Phase != Complete {
					t.Fatal(p.Status.Message)
				}
				p = executed(t, cluster, fmt.Sprintf("install-%d", i), releaseStep("a.v1", r...))
			}
			last := c.releases[len(c.releases)-1]
			if c.problem == "" {
				require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
				require.Equal(t, last, versionsIn(cluster))
				return
			}
			require.Equal(t, Failed, p.Status.Phase)
			require.Equal(t, c.problem, p.Status.Message)
			require.Equal(t, c.releases[len(c.releases)-2], versionsIn(cluster), "nothing was written")
			if c.migrated == nil {
				return
			}
			crd := fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", "things.example.com").DeepCopy()
			crd.Status.StoredVersions = c.migrated
			require.NoError(t, cluster.UpdateStatus(crd))
			p = executed(t, cluster, "install-again", releaseStep("a.v1", last...))
			require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
			require.Equal(t, last, versionsIn(cluster))
		})
	}
}

// TestDefinitionIsCreatedOrUpdated checks that a definition is written with its whole schema and records its version,
// with and without other owners. It includes OLM's cases.
func TestDefinitionIsCreatedOrUpdated(t *testing.T) {
	bounded := func(minimum float64) *apiextensionsv1.CustomResourceDefinition {
		crd := release("v1!")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer", Minimum: &minimum, Maximum: new(256.0)}}
		return crd
	}
	owning := func(name string) *v1alpha1.ClusterServiceVersion {
		return CSV(name, func(c *v1alpha1.ClusterServiceVersion) {
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
		"a new definition":                 {noted: []string{"ops/a.v1"}},
		"of its only owner":                {existing: []olmcore.Object{owning("a.v0"), ours}, noted: []string{"ops/a.v0", "ops/a.v1"}},
		"of another version":               {existing: []olmcore.Object{owning("b.v1"), ours}, noted: []string{"ops/a.v1"}},
		"managed by OLM, without an owner": {existing: []olmcore.Object{users}, noted: []string{"ops/a.v1"}},
		"of a version that exists already": {existing: []olmcore.Object{owning("a.v1")}, noted: []string{"ops/a.v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := World(t, c.existing...)
			p := executed(t, cluster, "install-x", CSVStep("a.v1"), Step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", bounded(2)))
			require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
			got := fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", "things.example.com")
			Same(t, bounded(2).Spec.Versions, got.Spec.Versions)
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

// TestTwoPlansShareADefinition checks that a definition records the versions of both plans, and that the second plan
// changes nothing else. It includes OLM's cases.
func TestTwoPlansShareADefinition(t *testing.T) {
	c := World(t)
	require.Equal(t, Complete, executed(t, c, "install-1", CSVStep("a.v1"), releaseStep("a.v1", "v1!")).Status.Phase)
	before := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "things.example.com").DeepCopy()
	require.Equal(t, Complete, executed(t, c, "install-2", CSVStep("b.v1"), releaseStep("b.v1", "v1!")).Status.Phase)
	after := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "things.example.com").DeepCopy()
	require.Equal(t, "ops/a.v1", after.Annotations["operatorframework.io/installed-alongside-"+alongsideHash("ops/a.v1")])
	require.Equal(t, "ops/b.v1", after.Annotations["operatorframework.io/installed-alongside-"+alongsideHash("ops/b.v1")])
	delete(after.Annotations, "operatorframework.io/installed-alongside-"+alongsideHash("ops/b.v1"))
	before.ObjectMeta.ResourceVersion, after.ObjectMeta.ResourceVersion = "", ""
	Same(t, before.ObjectMeta, after.ObjectMeta)
	Same(t, before.Spec, after.Spec)
}

// TestNewerVersionKeepsItsDefinition checks that a definition is kept for a live newer version that owns it, if the
// definition also serves what the older version needs.
func TestNewerVersionKeepsItsDefinition(t *testing.T) {
	there := func(change func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
		return CSV("a.v2", versioned("2.0.0", func(c *v1alpha1.ClusterServiceVersion) {
			c.Namespace = "there"
			change(c)
		}))
	}
	nothing := func(*v1alpha1.ClusterServiceVersion) {}
	unserved := CRDObject("v1", "v2")
	unserved.Spec.Versions[0].Served = false
	for name, c := range map[string]struct {
		have  *apiextensionsv1.CustomResourceDefinition
		newer *v1alpha1.ClusterServiceVersion
		own   func(*v1alpha1.ClusterServiceVersion)
		kept  bool
	}{
		"a newer one":                          {CRDObject("v1", "v2"), there(nothing), nothing, true},
		"what the older one needs is unserved": {unserved, there(nothing), nothing, false},
		"what the older one needs is missing":  {CRDObject("v2"), there(nothing), nothing, false},
		"a newer one that is being deleted": {
			CRDObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = Ago(0) }), nothing, false,
		},
		"a newer one that is a copy": {
			CRDObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }), nothing, false,
		},
		"a newer one that does not own it": {
			CRDObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.CustomResourceDefinitions.Owned = nil }), nothing, false,
		},
		"a newer one of another package": {
			CRDObject("v1", "v2"), there(func(c *v1alpha1.ClusterServiceVersion) { c.Name = "b.v2" }), nothing, false,
		},
		"one of the same version": {CRDObject("v1", "v2"), there(versioned("1.0.0")), nothing, false},
		"a newer one that it replaces": {
			CRDObject("v1", "v2"), CSV("a.v2", versioned("2.0.0")), func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "a.v2" }, false,
		},
		"a newer one in the same namespace": {CRDObject("v1", "v2"), CSV("a.v2", versioned("2.0.0")), nothing, true},
	} {
		t.Run(name, func(t *testing.T) {
			have := Installed(c.have, true)
			have.Annotations = recordedFor(c.newer.Namespace + "/" + c.newer.Name)
			own := CSV("a.v1", versioned("1.0.0", c.own))
			in := input(Plan(Installing, []*v1alpha1.Step{CRDStep("a.v1", "v1")}, Started(time.Second)), with(own, have, c.newer))
			r := reconcile(t, in)
			require.Equal(t, c.kept, slices.Contains(Reasons(r), installplan.ReasonNewerCRDKept))
			if !c.kept {
				return
			}
			after := r.Actions[0].(olmcore.Update).After.(*apiextensionsv1.CustomResourceDefinition)
			Same(t, have.Spec, after.Spec)
			recorded := recordedFor(c.newer.Namespace+"/"+c.newer.Name, "ops/a.v1")
			if c.newer.Namespace != NS {
				recorded[firstInstalledBy] = c.newer.Namespace
			}
			require.Equal(t, recorded, after.Annotations)
			in = input(in.InstallPlan, with(own, after, c.newer))
			require.Equal(t, Complete, statusOf(in, reconcile(t, in)).Phase)
		})
	}
}

// TestTwoVersionsOfAPlanShareADefinition checks that neither version prevents the other from writing the definition.
func TestTwoVersionsOfAPlanShareADefinition(t *testing.T) {
	have := Installed(CRDObject("v1"), true)
	have.Annotations = recordedFor("ops/a.v2")
	in := input(Plan(Installing, []*v1alpha1.Step{CRDStep("a.v1", "v1"), CRDStep("a.v2", "v1", "v2")}, Started(time.Second)),
		with(CSV("a.v1", versioned("1.0.0")), CSV("a.v2", versioned("2.0.0")), have))
	r := reconcile(t, in)
	require.Empty(t, Reasons(r))
	require.Len(t, r.Actions[0].(olmcore.Update).After.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions, 2)
}

// TestConversionWebhookOfALiveVersionIsKept checks that a manifest does not replace the webhook of a live version.
func TestConversionWebhookOfALiveVersionIsKept(t *testing.T) {
	converts := func(change ...func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
		return CSV("b.v1", append([]func(*v1alpha1.ClusterServiceVersion){func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{Type: v1alpha1.ConversionWebhook, ConversionCRDs: []string{"things.example.com"}}}
		}}, change...)...)
	}
	for name, c := range map[string]struct {
		by    *v1alpha1.ClusterServiceVersion
		stays bool
	}{
		"a version of the namespace":                  {converts(), true},
		"a version of another one":                    {converts(func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }), true},
		"a version of another one that cannot answer": {converts(func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "evil" }), false},
		"a version that is being deleted": {
			converts(func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = Ago(0) }), false,
		},
		"a copy": {
			converts(func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }), false,
		},
		"a version with another webhook": {converts(func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.WebhookDefinitions[0].Type = v1alpha1.ValidatingAdmissionWebhook
		}), false},
		"a version that converts another definition": {
			converts(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions[0].ConversionCRDs = []string{"x"} }), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			have := Installed(CRDObject("v1"), true)
			convertedBy("there", "b")(have)
			got, _ := update(t, CRDStep("a.v1", "v1", "v2"), have, c.by)
			require.Equal(t, c.stays, got.Spec.Conversion != nil)
		})
	}
}

// TestTimeoutForADefinitionToBeEstablished checks that the timeout starts with the latest event.
func TestTimeoutForADefinitionToBeEstablished(t *testing.T) {
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, message string, since time.Duration) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, Message: message, LastTransitionTime: *Ago(since)}
	}
	const text = "waiting for CustomResourceDefinition things.example.com to be established"
	for name, c := range map[string]struct {
		started, created time.Duration
		conditions       []apiextensionsv1.CustomResourceDefinitionCondition
		left             time.Duration
		message          string
	}{
		"from the start of the plan": {59 * time.Second, time.Hour, nil, time.Second, text},
		"from its creation":          {time.Hour, 58 * time.Second, nil, 2 * time.Second, text},
		"from its last condition": {time.Hour, time.Hour, []apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue, "no conflicts", 57*time.Second)}, 3 * time.Second, text},
		"from the condition that says why": {time.Hour, time.Hour, []apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse, "taken", 58*time.Second)}, 2 * time.Second, text + ": taken"},
		"not from a condition about something else": {59 * time.Second, time.Hour, []apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NonStructuralSchema, apiextensionsv1.ConditionTrue, "x", 0)}, time.Second, text},
	} {
		t.Run(name, func(t *testing.T) {
			s := WithStatus(WaitingAPI, CRDStep("a.v1", "v1"))
			have := applied(t, s, CSV("a.v1")).(*apiextensionsv1.CustomResourceDefinition)
			have.CreationTimestamp, have.Status.Conditions = *Ago(c.created), c.conditions
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(c.started)), with(CSV("a.v1"), have))
			r := reconcile(t, in)
			require.Equal(t, c.message, statusOf(in, r).Message)
			require.Equal(t, min(c.left, 5*time.Second), r.RequeueAfter)
			in.InstallPlan.Status, in.Now = statusOf(in, r), Noon.Add(c.left)
			got := statusOf(in, reconcile(t, in))
			require.Equal(t, Failed, got.Phase)
			require.Equal(t, c.message, got.Message)
			require.Equal(t, []v1alpha1.StepStatus{WaitingAPI}, Statuses(got))

			in.InstallPlan.Status.Phase, in.InstallPlan.Spec.Approval, in.InstallPlan.Spec.Approved = RequiresApproval, v1alpha1.ApprovalManual, false
			in.Now = Noon.Add(time.Hour)
			require.Empty(t, reconcile(t, in).Diagnostics, "no timeout starts before the approval")
		})
	}
}

func TestRemovedStoredVersionsAreListedInOrder(t *testing.T) {
	have := Installed(CRDObject("v0", "v1", "v2"), true)
	have.Status.StoredVersions = []string{"v2", "v1", "v0"}
	in := input(Plan(Installing, []*v1alpha1.Step{CRDStep("", "v1")}, Started(time.Second)), with(have))
	require.Equal(t, `retrying execution due to error: risk of data loss updating "things.example.com": `+
		`new CRD removes version v0, v2 that is listed as a stored version on the existing CRD`, statusOf(in, reconcile(t, in)).Message)
}

// TestLateValidationDoesNotRefuseAnUpdatedDefinition checks that verdicts that arrive after the update change nothing.
func TestLateValidationDoesNotRefuseAnUpdatedDefinition(t *testing.T) {
	s := CRDStep("a.v1", "v1")
	up := applied(t, s, CSV("a.v1")).(*apiextensionsv1.CustomResourceDefinition)
	in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1"), up))
	in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: up.Name, Version: "v1", Name: "x", New: []string{"bad"}})
	require.Equal(t, Complete, statusOf(in, reconcile(t, in)).Phase)
}

// TestAlongsideAnnotationEqualsThatOfOLM checks that records of other namespaces are recognized.
func TestAlongsideAnnotationEqualsThatOfOLM(t *testing.T) {
	s := CRDStep("etcdoperator.v0.9.4", "v1")
	p := Plan("Installing", []*v1alpha1.Step{s}, Started(0), func(p *v1alpha1.InstallPlan) { p.Namespace = "operators" })
	g := Group()
	g.Namespace = "operators"
	r := reconcile(t, input(p, func(in *installplan.Input) { in.OperatorGroups = olmcore.Found(g) }))
	require.Equal(t, "operators/etcdoperator.v0.9.4",
		r.Actions[1].(olmcore.Create).Object.GetAnnotations()["operatorframework.io/installed-alongside-4b21bc9c2e75a808"])
}

// TestUnservedDefinitionsServeNoKind checks that a definition serves no kind if it is being deleted, its version is not
// served, or its names were not accepted.
func TestUnservedDefinitionsServeNoKind(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		served bool
	}{
		"served":               {func(*apiextensionsv1.CustomResourceDefinition) {}, true},
		"going":                {func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = Ago(0) }, false},
		"a version unserved":   {func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = false }, false},
		"names not accepted":   {func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions[0].Status = "False" }, false},
		"nothing established":  {func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions[1].Status = "False" }, false},
		"of another API group": {func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Group = "other.com" }, false},
	} {
		crd := Installed(CRDObject("v1"), true)
		c.change(crd)
		s := Step("", "example.com", "v1", "Thing", "x", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"}}`)
		in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(crd))
		in.Config.SupportedKinds = []string{"Thing"}
		require.Equal(t, c.served, len(reconcile(t, in).Actions) == 2, name)
	}
}
