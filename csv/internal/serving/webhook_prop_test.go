// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// published contains the CRDs of the drawn operators.
var published = []string{"cools.example.com", "as.example.com", "bs.example.com"}

// drawnCSV draws an operator with some webhooks, valid or not.
func drawnCSV(t *rapid.T) *v1alpha1.ClusterServiceVersion {
	c := operator()
	c.Name, c.UID = rapid.SampledFrom([]string{"cool.v1", "cool.v2"}).Draw(t, "name"), "uid-cool.v1"
	for _, crd := range published[1:] {
		c.Spec.CustomResourceDefinitions.Owned = append(
			c.Spec.CustomResourceDefinitions.Owned,
			v1alpha1.CRDDescription{Name: crd, Version: "v1", Kind: "Kind"},
		)
	}
	name := rapid.SampledFrom([]string{"a.example.com", "b.example.com", "c.example.com", "d.example.com"})
	for _, generateName := range rapid.SliceOfNDistinct(name, 0, 4, rapid.ID).Draw(t, "webhooks") {
		w := csvtest.Webhook(generateName, rapid.SampledFrom([]v1alpha1.WebhookAdmissionType{validating, mutating, conversion}).Draw(t, "type"))
		w.ContainerPort = rapid.SampledFrom([]int32{0, 443, 9443}).Draw(t, "port")
		w.WebhookPath = rapid.SampledFrom([]*string{nil, new("/"), new("/x")}).Draw(t, "path")
		if rapid.Bool().Draw(t, "with more") {
			w.TimeoutSeconds, w.FailurePolicy = new(int32(10)), new(admissionregistrationv1.Ignore)
			w.ObjectSelector = &metav1.LabelSelector{}
		}
		if w.Type == conversion {
			w.ConversionCRDs = rapid.SliceOfNDistinct(rapid.SampledFrom(published), 1, 2, rapid.ID).Draw(t, "CRDs")
		}
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, w)
	}
	return c
}

// drawnSource draws an operator, and damaged objects of an installation with the same or other descriptions.
func drawnSource(t *rapid.T) internalserving.Clients {
	crds := func() (crds []olmcore.Object) {
		for _, name := range published {
			crds = append(crds, crd(name, recorded("ns/cool.v1", "ns/cool.v2")))
		}
		return crds
	}
	before := drawnCSV(t)
	s := source(drawnCSV(t), crds()...)
	if rapid.Bool().Draw(t, "same") {
		s.CSV = before.DeepCopy()
	}
	earlier := source(before, crds()...)
	earlier.Certificates = backends{"cool": [][]byte{first, second}[rapid.IntRange(0, 1).Draw(t, "earlier authority")]}
	objects := earlier.CRDs
	s.CRDs = nil
	if actions, problem := earlier.Install(); problem == "" {
		cluster := fake.NewCluster(csvtest.Now)
		for _, crd := range objects {
			require.NoError(t, cluster.Load(crd))
		}
		do(t, cluster, actions)
		for _, o := range stored(t, cluster) {
			harm(t, o)
			observe(&s, o)
		}
	} else {
		observe(&s, crds()...)
	}
	s.Group = group(
		rapid.SampledFrom([]operatorsv1.OperatorGroupSpec{{}, {TargetNamespaces: []string{"ns"}},
			{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}).
			Draw(t, "group"),
	)
	if rapid.Bool().Draw(t, "an account") {
		s.Account = account()
	}
	return s
}

func harm(t *rapid.T, o olmcore.Object) {
	if _, isCRD := o.(*definition); isCRD {
		return
	}
	labels := o.GetLabels()
	switch rapid.IntRange(0, 11).Draw(t, "harm") {
	case 0:
		delete(labels, "olm.webhook-description-generate-name")
	case 1:
		labels["olm.webhook-description-generate-name"] = "a.example.com"
	case 2:
		labels["olm.webhook-description-hash"] = "x"
	case 3:
		o.SetLabels(nil)
	case 4:
		labels["olm.owner.uid"] = "x"
	case 5:
		labels["olm.owner"] = "cool.v0"
	case 6:
		o.SetName(o.GetName()[:len(o.GetName())-5] + "zzzzz")
	case 7:
		o.SetDeletionTimestamp(csvtest.Ago(0))
		o.SetFinalizers([]string{"x"})
	case 8:
		if v, ok := o.(*validatingConfiguration); ok && len(v.Webhooks) > 0 {
			v.Webhooks[0].ClientConfig.CABundle = nil
		}
	}
}

// answer contains all results of the package.
type answer struct {
	problem       string
	install       []olmcore.Action
	installation  string
	trust         []olmcore.Action
	state         internalserving.State
	why           string
	clients       []internalserving.Client
	names, others []string
}

func ask(s internalserving.Clients) (a answer) {
	a.problem = internalserving.ProblemOfWebhooks(s.CSV)
	a.install, a.installation = s.Install()
	a.trust = s.Trust()
	a.state, a.why = healthOf(s)
	a.clients = s.List()
	a.names, a.others = internalserving.ConfigurationNames(s.CSV)
	return a
}

func reversed(s internalserving.Clients) internalserving.Clients {
	objects := *s.Objects
	s.Objects, s.CRDs = &objects, slices.Clone(s.CRDs)
	objects.ValidatingWebhookConfigurations.Items = slices.Clone(objects.ValidatingWebhookConfigurations.Items)
	objects.MutatingWebhookConfigurations.Items = slices.Clone(objects.MutatingWebhookConfigurations.Items)
	slices.Reverse(s.CRDs)
	slices.Reverse(objects.ValidatingWebhookConfigurations.Items)
	slices.Reverse(objects.MutatingWebhookConfigurations.Items)
	return s
}

// TestOrderOfListsDoesNotMatter also checks that the input is not changed, that no object is written twice, and that
// all writes are valid.
func TestOrderOfListsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSource(t)
		before, err := json.Marshal([]any{s.CSV, s.Group, s.Objects, s.CRDs})
		require.NoError(t, err)
		got := ask(s)
		after, err := json.Marshal([]any{s.CSV, s.Group, s.Objects, s.CRDs})
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
		require.Empty(t, cmp.Diff(got, ask(reversed(s)), cmp.AllowUnexported(answer{})))
		for _, actions := range [][]olmcore.Action{got.install, got.trust} {
			require.NoError(t, invariant.Separate(olmcore.Result{Actions: actions}))
			require.NoError(t, invariant.Recordable(olmcore.Result{Actions: actions}))
			for _, a := range actions {
				_, ref, _ := a.Describe()
				_, deletes := a.(olmcore.Delete)
				byController := ref.Kind == "CustomResourceDefinition" || deletes
				require.Equal(t, byController || s.Account == nil, a.Identity() == nil, ref)
			}
		}
	})
}

// TestInstallationConverges checks that nothing is left to do, and that the webhooks are Installed, after the actions
// have run and removed descriptions have been cleaned up.
func TestInstallationConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSource(t)
		cluster := fake.NewCluster(csvtest.Now)
		actions, problem := s.Install()
		if internalserving.ProblemOfWebhooks(s.CSV) != "" || problem != "" {
			return
		}
		for _, o := range all(s) {
			require.NoError(t, cluster.Load(o))
		}
		do(t, cluster, actions)
		next := s
		look := func() {
			next.Objects, next.CRDs = source(s.CSV).Objects, nil
			observe(&next, stored(t, cluster)...)
		}
		look()
		do(t, cluster, next.Trust())
		look()
		actions, problem = next.Install()
		require.Empty(t, problem)
		require.Empty(t, lines(actions))
		require.Empty(t, lines(next.Trust()))
		state, why := healthOf(next)
		require.Equal(t, internalserving.Healthy, state, why)
		require.Empty(t, slices.DeleteFunc(next.List(), func(c internalserving.Client) bool { return !c.Missing }))
	})
}

// TestTrustUpdatesEveryClient checks that all clients trust the next certificate after the actions of Trust have run.
func TestTrustUpdatesEveryClient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSource(t)
		if s.Account != nil {
			s.Group.Spec.ServiceAccountName = s.Account.Name
		}
		for _, crd := range s.CRDs {
			if rapid.Bool().Draw(t, "unrecorded") {
				crd.Annotations = nil
			}
		}
		cluster := fake.NewCluster(csvtest.Now)
		for _, o := range all(s) {
			require.NoError(t, cluster.Load(o))
		}
		s.Certificates = backends{"cool": second}
		do(t, cluster, s.Trust())
		s.Objects, s.CRDs = source(s.CSV).Objects, nil
		observe(&s, stored(t, cluster)...)
		for _, c := range s.List() {
			require.True(t, c.Missing || string(c.Bundle) == string(second), c)
		}
		require.Empty(t, lines(s.Trust()))
	})
}

func all(s internalserving.Clients) []olmcore.Object {
	var objects []olmcore.Object
	for _, o := range s.Objects.ValidatingWebhookConfigurations.Items {
		objects = append(objects, o)
	}
	for _, o := range s.Objects.MutatingWebhookConfigurations.Items {
		objects = append(objects, o)
	}
	for _, o := range s.CRDs {
		objects = append(objects, o)
	}
	return objects
}

// TestObjectsOfOtherOwnersAreNotWritten checks that only objects with the labels of this CSV are changed or deleted,
// except for caBundles of other versions of its namespace.
func TestWebhooksOfOtherOwnersAreNotWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawnSource(t)
		actions, _ := s.Install()
		for _, a := range append(actions, s.Trust()...) {
			var labels map[string]string
			_, ref, cause := a.Describe()
			for _, o := range all(s) {
				if olmcore.KeyOf(o) == ref.Key() {
					labels = o.GetLabels()
				}
			}
			if _, creates := a.(olmcore.Create); creates || ref.Kind == "CustomResourceDefinition" {
				continue
			}
			require.Equal(t, "ns", labels["olm.owner.namespace"], ref)
			if cause.Reason != internalserving.ReasonTrust {
				require.Equal(t, s.CSV.Name, labels["olm.owner"], ref)
				require.Contains(t, []string{"", string(s.CSV.UID)}, labels["olm.owner.uid"], ref)
			}
		}
	})
}

// TestPublishedWebhooksAreInstalled installs what published operators describe, in a cluster that has their CRDs.
func TestPublishedWebhooksAreInstalled(t *testing.T) {
	for _, b := range realdata.Sample(t) {
		cluster := fake.NewCluster(csvtest.Now)
		var c *v1alpha1.ClusterServiceVersion
		for _, o := range b.Objects {
			switch o := o.(type) {
			case *v1alpha1.ClusterServiceVersion:
				c = o
				c.Namespace, c.UID = "ns", "uid"
			case *definition:
				o.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": "ns/" + b.Operator}
				require.NoError(t, cluster.Load(o))
			}
		}
		s := source(c)
		trusted := backends{}
		for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			trusted[d.Name] = first
		}
		s.Certificates = trusted
		for round := range 2 {
			s.Objects, s.CRDs = source(c).Objects, nil
			observe(&s, stored(t, cluster)...)
			for _, crd := range s.CRDs {
				crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-1": "ns/" + c.Name}
			}
			actions, problem := s.Install()
			require.Empty(t, problem, "%s %s", b.Operator, b.Version)
			require.Equal(t, round == 0 && len(c.Spec.WebhookDefinitions) > 0, len(actions) > 0, "%s %s: %v", b.Operator, b.Version, lines(actions))
			do(t, cluster, actions)
		}
		state, why := healthOf(s)
		require.Equal(t, internalserving.Healthy, state, "%s %s: %s", b.Operator, b.Version, why)
	}
}

// FuzzDescriptions checks that every description is rejected, or is installed and then at rest.
func FuzzDescriptions(f *testing.F) {
	for i, w := range everything() {
		f.Add(uint8(i), w.GenerateName, int32(443), "https", "/cools", "v1", "example.com", "cools", "cools.example.com", int32(10))
	}
	f.Add(uint8(0), "V.example.com", int32(-1), "", "//", "", "*", "*/*", "", int32(0))
	f.Add(uint8(1), "v.example.com", int32(0), "9443", "/a/", "v1beta1", "admissionregistration.k8s.io", "x/*", "bs.example.com", int32(31))
	f.Fuzz(func(t *testing.T, kind uint8, name string, port int32, target, path, version, group, resource, crdName string, timeout int32) {
		w := describe(name, []v1alpha1.WebhookAdmissionType{validating, mutating, conversion, "Odd"}[kind%4])
		w.ContainerPort, w.TargetPort, w.WebhookPath, w.TimeoutSeconds = port, new(intstr.Parse(target)), &path, &timeout
		w.AdmissionReviewVersions, w.ConversionCRDs = []string{version}, []string{crdName}
		for i := range w.Rules {
			w.Rules[i].APIGroups, w.Rules[i].Resources = []string{group}, []string{"x", resource}
		}
		s := source(operator(w, describe("other.example.com", mutating, func(w *description) { w.ContainerPort = 1 })), crd("cools.example.com"))
		got := ask(s)
		if got.problem != "" {
			return
		}
		require.Empty(t, got.installation)
		objects := installed(t, s)
		s.Objects, s.CRDs = source(s.CSV).Objects, nil
		observe(&s, objects...)
		actions, problem := s.Install()
		require.Empty(t, problem)
		require.Empty(t, lines(actions))
	})
}

func BenchmarkFirstPass(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		var webhooks []description
		for i := range n {
			webhooks = append(webhooks, describe(fmt.Sprintf("w%d.example.com", i), []v1alpha1.WebhookAdmissionType{validating, mutating}[i%2]))
		}
		s := source(operator(webhooks...))
		full := source(s.CSV)
		observe(&full, installed(b, s)...)
		b.Run(fmt.Sprintf("install/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.Install()
			}
		})
		b.Run(fmt.Sprintf("health/%d", n), func(b *testing.B) {
			for b.Loop() {
				full.Health()
			}
		})
		b.Run(fmt.Sprintf("problem/%d", n), func(b *testing.B) {
			for b.Loop() {
				internalserving.ProblemOfWebhooks(s.CSV)
			}
		})
	}
}
