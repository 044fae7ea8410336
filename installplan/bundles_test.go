// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/internal/bundle"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// referenceIn returns a step that references an object of an unpacked bundle.
func referenceIn(namespace string) *v1alpha1.Step {
	return Step("etcd.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "etcd.v1", `{"kind":"ConfigMap","name":"`+BundleName+
		`","namespace":"`+namespace+`","catalogSourceName":"cool","catalogSourceNamespace":"`+namespace+`","replaces":"","properties":"{}"}`)
}

// filledPlan returns the plan that package create writes for the operator of an image.
func filledPlan(t *testing.T, o olmcore.Operator, cm *corev1.ConfigMap) *v1alpha1.InstallPlan {
	c := World(t, cm, UserSubscription(o.Package))
	driven(t, c, 0, makers(Installs(o), installplan.Config{}))
	return onlyPlan(t, c)
}

// TestLostBundleIsUnpackedAgain checks that an unpacked bundle that was lost while the plan waited for approval is
// unpacked again, and that only the approved content is installed.
func TestLostBundleIsUnpackedAgain(t *testing.T) {
	for name, lose := range map[string]func(c *fake.Cluster, cm *corev1.ConfigMap) error{
		"the ConfigMap was deleted": func(c *fake.Cluster, cm *corev1.ConfigMap) error { return c.Delete(olmcore.RefOf(cm).Unversioned()) },
		"its content was deleted": func(c *fake.Cluster, cm *corev1.ConfigMap) error {
			return fake.Edit(c, "olm", cm.Name, func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, cm := ImageOf(t, Rich())
			cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			c := World(t, &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool"}}, cm, UserSubscription("rich", Manual))
			config := Things
			config.OPMImage, config.UtilImage = "opm:1", "util:1"
			driven(t, c, 0, makers(Installs(o), config), unpackingAgain(config))
			p := onlyPlan(t, c)
			require.Equal(t, RequiresApproval, p.Status.Phase)
			require.Len(t, p.Status.BundleLookups, 1)
			require.Equal(t, BundleImage, p.Status.BundleLookups[0].Path)
			require.Empty(t, p.Status.BundleLookups[0].Conditions, "it is unpacked")

			require.NoError(t, lose(c, fake.Find[*corev1.ConfigMap](c, "olm", BundleName)))
			d := driven(t, c, time.Minute, unpackingAgain(config))
			require.NotNil(t, fake.Find[*batchv1.Job](c, "olm", BundleName), "it is unpacked again")
			require.NoError(t, fake.Edit(c, NS, p.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
			require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
			require.Equal(t, Failed, onlyPlan(t, c).Status.Phase, "nothing is applied without the bundle")
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, NS, "rich.v1"))

			other := maps.Clone(cm.BinaryData)
			other["more"] = Zipped(t, "more")
			for _, back := range []struct {
				data  map[string][]byte
				phase v1alpha1.InstallPlanPhase
			}{{other, Failed}, {cm.BinaryData, Complete}} {
				require.NoError(t, fake.Edit(c, "olm", BundleName, func(have *corev1.ConfigMap) {
					have.Annotations, have.BinaryData = cm.Annotations, back.data
				}))
				require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
				require.Equal(t, back.phase, onlyPlan(t, c).Status.Phase, onlyPlan(t, c).Status.Message)
			}
		})
	}
}

// TestOnlyNeededLostBundlesAreReturned checks that LostBundles contains only bundles whose image is known and that the
// plan still needs.
func TestOnlyNeededLostBundlesAreReturned(t *testing.T) {
	o, cm := ImageOf(t, Rich())
	base := filledPlan(t, o, cm).DeepCopy()
	Started(0)(base)
	for name, c := range map[string]struct {
		change func(in *installplan.Input)
		lost   bool
	}{
		"absent":           {change: func(in *installplan.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]() }, lost: true},
		"broken":           {change: func(in *installplan.Input) { in.ConfigMaps.Items[0].BinaryData["000.json"] = []byte("?") }, lost: true},
		"empty":            {change: func(in *installplan.Input) { in.ConfigMaps.Items[0].BinaryData = nil }, lost: true},
		"there":            {},
		"of other content": {change: func(in *installplan.Input) { in.ConfigMaps.Items[0].BinaryData["x"] = Zipped(t, "x") }},
		"of an unknown path": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.BundleLookups[0].Path = olmcore.Found[*corev1.ConfigMap](), "other"
		}},
		"of no catalog": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.BundleLookups[0].CatalogSourceRef = olmcore.Found[*corev1.ConfigMap](), nil
		}},
		"of a finished plan": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.Phase, in.InstallPlan.Finalizers = olmcore.Found[*corev1.ConfigMap](), Complete, nil
		}},
		"of no lookup": {change: func(in *installplan.Input) {
			in.ConfigMaps, in.InstallPlan.Status.BundleLookups = olmcore.Found[*corev1.ConfigMap](), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(base.DeepCopy(), func(in *installplan.Input) {
				in.ConfigMaps, in.Config = olmcore.Found[*corev1.ConfigMap](cm.DeepCopy()), Things
			})
			if c.change != nil {
				c.change(&in)
			}
			lost, err := lostBundles(in)
			require.NoError(t, err)
			if !c.lost {
				require.Empty(t, lost)
				return
			}
			want, err := bundle.NewLookup(o, Noon)
			require.NoError(t, err)
			Same(t, []v1alpha1.BundleLookup{want}, lost)
		})
	}
	_, err := lostBundles(installplan.Input{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestStepsReadTheMatchingConfigMap checks that steps read the ConfigMap with the name and namespace of their
// reference, with its digest if it has one. What the version replaces comes from the plan.
func TestStepsReadTheMatchingConfigMap(t *testing.T) {
	reference := func(more string) *v1alpha1.Step {
		return Step("etcd.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "etcd.v1", `{"kind":"ConfigMap","name":"`+BundleName+
			`","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","replaces":"etcd.v0","properties":"{}"`+more+`}`)
	}
	cm := Filled(map[string]string{"csv.yaml": EtcdCSV})
	elsewhere := cm.DeepCopy()
	elsewhere.Namespace = "elsewhere"
	round := func(s *v1alpha1.Step, cms ...*corev1.ConfigMap) (installplan.Input, olmcore.Result) {
		in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), func(in *installplan.Input) { in.ConfigMaps = olmcore.Found(cms...) })
		return in, reconcile(t, in)
	}
	_, r := round(reference(""), elsewhere, cm)
	require.Equal(t, "etcd.v0", r.Actions[1].(olmcore.Create).Object.(*v1alpha1.ClusterServiceVersion).Spec.Replaces)
	for want, s := range map[string]*v1alpha1.Step{
		"bundle content of etcd.v1 changed since the plan was created": reference(`,"digest":"other"`),
		"couldn't find unpacked step for ":                             func() *v1alpha1.Step { s := reference(""); s.Resource.Version = "v9"; return s }(),
	} {
		in, r := round(s, cm)
		require.Contains(t, statusOf(in, r).Message, want)
	}
	in, r := round(reference(""), elsewhere)
	require.Contains(t, statusOf(in, r).Message, "error finding unpacked bundle configmap for ref ")
}

// TestLostLookupsAreReturnedOnce checks that the lookup with the image and namespace of a reference is returned once.
func TestLostLookupsAreReturnedOnce(t *testing.T) {
	ref := Step("etcd.v1", "", "v1", "ConfigMap", "x", `{"kind":"ConfigMap","name":"`+BundleName+
		`","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","replaces":"","properties":""}`)
	other, elsewhere := Lookup(t), Lookup(t)
	other.Path = "another"
	elsewhere.CatalogSourceRef = &corev1.ObjectReference{Namespace: "elsewhere", Name: "cool"}
	lost, err := lostBundles(input(Plan(Installing, []*v1alpha1.Step{ref, ref.DeepCopy()}, Started(time.Second), func(p *v1alpha1.InstallPlan) {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{other, elsewhere, Lookup(t)}
	})))
	require.NoError(t, err)
	require.Len(t, lost, 1)
	require.Equal(t, "olm", lost[0].CatalogSourceRef.Namespace)
	require.Equal(t, BundleImage, lost[0].Path)
}

// TestStepsOfAnImageAreReferences includes OLM's cases.
func TestStepsOfAnImageAreReferences(t *testing.T) {
	o, cm := ImageOf(t, Rich())
	p := filledPlan(t, o, cm)
	for _, s := range p.Status.Plan {
		var ref map[string]string
		require.NoError(t, json.Unmarshal([]byte(s.Resource.Manifest), &ref))
		digest := ref["digest"]
		require.Len(t, digest, 64)
		delete(ref, "digest")
		want := map[string]string{"kind": "ConfigMap", "name": BundleName, "namespace": "olm", "catalogSourceName": "cool",
			"catalogSourceNamespace": "olm", "replaces": "", "properties": ""}
		if s.Resource.Kind == "ClusterServiceVersion" {
			want["properties"] = `{"properties":[{"type":"olm.package","value":{"packageName":"x"}}]}`
		}
		require.Equal(t, want, ref)
	}
	inline, err := bundle.Steps(Rich(), NS, bundle.Literal)
	require.NoError(t, err)
	names := func(steps []*v1alpha1.Step) map[string]int {
		out := map[string]int{}
		for _, s := range steps {
			out[s.Resource.Group+s.Resource.Version+s.Resource.Kind+s.Resource.Name]++
		}
		return out
	}
	require.True(t, maps.Equal(names(inline), names(p.Status.Plan)))
}

// TestOnlyPlannedContentIsApplied checks that missing, broken or changed content is never applied.
func TestOnlyPlannedContentIsApplied(t *testing.T) {
	for name, c := range map[string]struct {
		change func(cm *corev1.ConfigMap)
		step   func(s *v1alpha1.Step)
		want   string
	}{
		"content that cannot be decoded": {change: func(cm *corev1.ConfigMap) { cm.BinaryData["000.json"] = []byte("?") },
			want: "error loading unpacked bundle configmap for ref {ConfigMap " + BundleName + " olm cool olm  {\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"x\"}}]}}: failed to extract bundle from configmap - 000.json: unexpected EOF"},
		"content without a version": {change: func(cm *corev1.ConfigMap) { cm.BinaryData = nil },
			want: "failed to extract bundle from configmap - bundle has no ClusterServiceVersion"},
		"invalid properties": {step: func(s *v1alpha1.Step) {
			s.Resource.Manifest = `{"kind":"ConfigMap","name":"` + BundleName + `","namespace":"olm","catalogSourceName":"cool","catalogSourceNamespace":"olm","properties":"{"}`
		}, want: `failed to load bundle properties for "rich.v1": failed to unmarshal properties annotation: unexpected end of JSON input`},
		"an object that it does not contain": {
			step: func(s *v1alpha1.Step) { s.Resource.Name = "other" }, want: "couldn't find unpacked step for ",
		},
		"other content": {change: func(cm *corev1.ConfigMap) { cm.BinaryData["x"] = Zipped(t, "x") },
			want: "bundle content of rich.v1 changed since the plan was created"},
	} {
		t.Run(name, func(t *testing.T) {
			o, cm := ImageOf(t, Rich())
			p := filledPlan(t, o, cm).DeepCopy()
			Started(0)(p)
			if c.change != nil {
				cm = cm.DeepCopy()
				c.change(cm)
			}
			if c.step != nil {
				for _, s := range p.Status.Plan {
					if s.Resource.Kind == "ConfigMap" {
						c.step(s)
					}
				}
			}
			in := input(p, func(in *installplan.Input) { in.ConfigMaps, in.Config = olmcore.Found[*corev1.ConfigMap](cm), Things })
			got := reconcile(t, in)
			require.Contains(t, statusOf(in, got).Message, c.want)
			for _, a := range got.Actions {
				_, target, _ := a.Describe()
				require.Equal(t, "InstallPlan", target.Kind)
			}
		})
	}
}

// TestPublishedBundlesAreInstalledFromTheirImages checks that plans with references install bundles, including those
// whose manifests would not fit into one plan.
func TestPublishedBundlesAreInstalledFromTheirImages(t *testing.T) {
	t.Parallel()
	var tooLarge []string
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			subs := []*v1alpha1.Subscription{Subscription("sub", func(s *v1alpha1.Subscription) { s.Spec.Package = b.Operator })}
			if inline := Planned(t, CreateInput(subs, PublishedOperator(b))); slices.Contains(Reasons(inline.Result), create.ReasonPlanTooLarge) {
				require.Empty(t, inline.Actions)
				tooLarge = append(tooLarge, b.Operator)
			}
			o, cm := ImageOf(t, PublishedOperator(b))
			size := 0
			for _, data := range cm.BinaryData {
				size += len(data)
			}
			require.Less(t, size, 1<<20, "it fits into one ConfigMap")
			c := World(t, append(monitoring(), cm, &v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "sub"}, Spec: &v1alpha1.SubscriptionSpec{Package: b.Operator},
			})...)
			for _, one := range []controller.Controller{makers(Installs(o), installplan.Config{}), plans(installplan.Config{})} {
				driven(t, c, 0, one)
			}
			p := onlyPlan(t, c)
			require.Equal(t, Complete, p.Status.Phase, p.Status.Message)
		})
	}
	require.Equal(t, []string{"stackgres-community"}, tooLarge, "their manifests do not fit")
}

// TestBundleOfAnotherNamespaceIsRefused checks that a bundle that was unpacked in another namespace is not read,
// installed, unpacked again with the credentials of that namespace, or deleted with the plan.
func TestBundleOfAnotherNamespaceIsRefused(t *testing.T) {
	for namespace, allowed := range map[string]bool{"olm": true, NS: true, "victim": false} {
		t.Run(namespace, func(t *testing.T) {
			cm := Filled(map[string]string{"csv.yaml": EtcdCSV})
			cm.Namespace, cm.CreationTimestamp = namespace, *Ago(100 * time.Hour)
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: "CatalogSource", Name: "cool", UID: "x"}}
			p := Plan(Installing, []*v1alpha1.Step{referenceIn(namespace)}, Started(time.Second), func(p *v1alpha1.InstallPlan) {
				l := Lookup(t)
				l.CatalogSourceRef = &corev1.ObjectReference{Namespace: namespace, Name: "cool"}
				p.Status.BundleLookups = []v1alpha1.BundleLookup{l}
			})
			in := input(p, func(in *installplan.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap](cm) })
			r := reconcile(t, in)
			if allowed {
				require.Equal(t, []string{status, "create ClusterServiceVersion ops/etcd.v1 (StepAbsent)"}, Describe(r))
			} else {
				require.Equal(t, []string{status}, Describe(r))
				require.Contains(t, statusOf(in, r).Message, "plans of namespace ops may not use bundles of namespace victim")
			}

			in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]()
			lost, err := lostBundles(in)
			require.NoError(t, err)
			require.Equal(t, allowed, len(lost) == 1, "unpacked again")

			bound, of := scopedTo(&corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: "scoped"})
			contained := in
			contained.InstallPlan = p.DeepCopy()
			bound(contained.InstallPlan)
			of(&contained)
			contained.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "scoped"}}
			lost, err = lostBundles(contained)
			require.NoError(t, err)
			require.Equal(t, namespace == NS, len(lost) == 1, "unpacked again by a plan under an account")

			gathered, err := installplan.Gather(t.Context(), Reader(t, p, cm, Group()), key, installplan.Config{})
			require.NoError(t, err)
			require.Equal(t, allowed, len(gathered.ConfigMaps.Items) == 1, "read")

			deleted := p.DeepCopy()
			deleted.DeletionTimestamp, deleted.Finalizers = Ago(0), []string{installplan.Finalizer}
			r = reconcile(t, input(deleted, func(in *installplan.Input) {
				in.ConfigMaps, in.OtherPlans = olmcore.Found[*corev1.ConfigMap](cm), olmcore.Found[*v1alpha1.InstallPlan]()
			}))
			deletes := 0
			for _, a := range r.Actions {
				if _, ok := a.(olmcore.Delete); ok {
					deletes++
				}
			}
			require.Equal(t, allowed, deletes == 1, "deleted")
		})
	}
	in := input(Plan(Installing, []*v1alpha1.Step{referenceIn("catalogs")}, Started(time.Second)))
	in.Config.GlobalNamespace = "catalogs"
	require.NotContains(t, statusOf(in, reconcile(t, in)).Message, "may refer")
}

// TestPlanWithTooManyBundlesFails checks that the plan fails without reading any of the bundles.
func TestPlanWithTooManyBundlesFails(t *testing.T) {
	var steps []*v1alpha1.Step
	for i := range 101 {
		s := referenceIn(NS)
		s.Resource.Manifest = strings.Replace(s.Resource.Manifest, BundleName, fmt.Sprintf("%s%03d", BundleName[3:], i), 1)
		steps = append(steps, s)
	}
	r := Reader(t, Plan(Installing, steps, Started(time.Second)), Group())
	in, err := installplan.Gather(t.Context(), r, key, installplan.Config{})
	require.NoError(t, err)
	require.Zero(t, r.Kinds["ConfigMap"])
	in.Now = Noon
	require.Equal(t, Failed, statusOf(in, reconcile(t, in)).Phase)
	in.InstallPlan = Plan(Installing, steps[:100], Started(time.Second))
	require.Equal(t, Installing, statusOf(in, reconcile(t, in)).Phase)
}

// TestImageAndObjectsInstallTheSame checks that references change only where a manifest comes from.
func TestImageAndObjectsInstallTheSame(t *testing.T) {
	contents := func(o olmcore.Operator, objects ...olmcore.Object) map[string]any {
		c := World(t, append(objects, UserSubscription("rich"))...)
		driven(t, c, 0, makers(Installs(o), Things), plans(Things))
		require.Equal(t, Complete, onlyPlan(t, c).Status.Phase)
		all := endState(t, c)
		for key := range all {
			if strings.HasPrefix(key, "InstallPlan") || strings.HasPrefix(key, "Subscription") || strings.Contains(key, BundleName) || key == "Namespace olm" {
				delete(all, key)
			}
		}
		return all
	}
	inline := Rich()
	inline.Bundle.Properties = []olmcore.Property{{Type: "olm.package", Value: []byte(`{"packageName":"x"}`)}}
	image, cm := ImageOf(t, Rich())
	if diff := cmp.Diff(contents(inline), contents(image, cm)); diff != "" {
		t.Error(diff)
	}
}

// TestReplacedImageIsInstalled checks that there is no plan, and the Subscription does not change, while an image
// cannot be unpacked. Another image in the catalog is installed. It includes OLM's cases.
func TestReplacedImageIsInstalled(t *testing.T) {
	good, cm := ImageOf(t, Operator("a"))
	bad := good
	bad.Bundle.Image = "quay.io/operatorhubio/broken:v1"
	cm.UID, cm.ResourceVersion = "", ""
	c := World(t, &v1alpha1.CatalogSource{ObjectMeta: InOLM("cool")}, cm, UserSubscription("a"))
	run := func(o olmcore.Operator) {
		driven(t, c, 10*time.Minute, makers(Installs(o), installplan.Config{}), plans(installplan.Config{}))
	}
	before := fake.Find[*v1alpha1.Subscription](c, NS, "a").DeepCopy()
	run(bad)
	require.Empty(t, everyPlan(t, c))
	Same(t, before, fake.Find[*v1alpha1.Subscription](c, NS, "a"))

	run(good)
	require.Equal(t, Complete, onlyPlan(t, c).Status.Phase)
	require.Equal(t, "a.v1", fake.Find[*v1alpha1.Subscription](c, NS, "a").Status.CurrentCSV)
	require.NotNil(t, fake.Find[*v1alpha1.ClusterServiceVersion](c, NS, "a.v1"))
}
