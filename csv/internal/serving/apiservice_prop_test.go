// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// input contains the parts of a Source that the laws vary.
type input struct {
	Now             time.Time
	CSV             *v1alpha1.ClusterServiceVersion
	Neighbours      []*v1alpha1.ClusterServiceVersion
	APIServices     []*apiregistrationv1.APIService
	Definitions     []*apiextensionsv1.CustomResourceDefinition
	Serving         serving.Objects
	Deployments     []*appsv1.Deployment
	ServiceAccounts []*corev1.ServiceAccount
	ServedAPIs      olmcore.Observed[schema.GroupVersionKind]
	Bundles         trustedBundles
}

func inputOf(s internalserving.Clients) input {
	return input{
		s.Now, s.CSV, s.Neighbours, s.APIServices, s.Definitions, *s.Objects, s.Deployments, s.ServiceAccounts, s.ServedAPIs,
		s.Certificates.(trustedBundles),
	}
}

func (in *input) source() internalserving.Clients {
	return internalserving.Clients{Certificates: in.Bundles, Operator: model.Operator{
		Now: in.Now, CSV: in.CSV, Group: csvtest.Group(), Neighbours: in.Neighbours, APIServices: in.APIServices,
		Definitions: in.Definitions, Objects: &in.Serving,
		Deployments:     in.Deployments,
		ServiceAccounts: in.ServiceAccounts, ServedAPIs: in.ServedAPIs,
	}}
}

// decided returns all decisions about a Source as one Result.
func decided(in input) (olmcore.Result, error) {
	s := in.source()
	actions, refused := s.Install()
	res := olmcore.Result{Actions: actions, RequeueAfter: s.DisruptedFor()}
	if res.Actions == nil {
		res.Actions = s.Trust()
	}
	say := func(reason, message string) {
		if message != "" {
			res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Info, reason, olmcore.RefOf(s.CSV), "", "%s", message))
		}
	}
	problem, _ := s.Issue()
	say("Install", refused)
	say("Conflict", s.Conflict())
	say("Refusal", internalserving.Refusal(s))
	say("Shared", strings.Join(internalserving.Shared(s), ", "))
	say("Issue", problem)
	if state := s.Health().State; state != internalserving.Healthy && state != internalserving.Disrupted {
		say("Health", string(state))
	}
	return res, nil
}

// spoiled draws a Source with several problems.
func spoiled(t *rapid.T) internalserving.Clients {
	spoils := []func(*internalserving.Clients){
		secondAPI, legacyObjects, absent, unavailable, drained(terminating(time.Minute, nil)), drained(
			pending(2*time.Minute, func(*corev1.Pod) {}),
		),
		defined("cubes"), defined("tubes", "ns/cool.v2", "other/x"), lists("tubes", itself),
		ownedBy(
			"ns",
			"cool.v1",
		), ownedBy("other", "cool.v1"), ownedBy("ns", "gone"), replaces(""), phase(csvtest.Succeeded), phase(csvtest.Deleting),
		live(func(a *apiregistrationv1.APIService) { a.Labels = nil }),
		live(func(a *apiregistrationv1.APIService) { a.Spec.Service = nil }),
		live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = join(oldCA, newCA) }),
		live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = otherCA }),
		live(func(a *apiregistrationv1.APIService) { a.DeletionTimestamp = csvtest.Ago(time.Minute) }),
		live(func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.uid"] = "before" }),
		live(func(a *apiregistrationv1.APIService) { a.Spec.InsecureSkipTLSVerify = true }),
		secret(func(o *corev1.Secret) { o.Data = nil }),
		func(s *internalserving.Clients) { s.Certificates = trustedBundles{"cool": join(oldCA, newCA)} },
		func(s *internalserving.Clients) { s.Certificates = trustedBundles{} },
		func(s *internalserving.Clients) { s.ServedAPIs.Items = nil },
		func(s *internalserving.Clients) { s.Objects.Services.Items = nil },
		func(s *internalserving.Clients) { s.Deployments = nil },
	}
	s := installedAPI()
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(spoils)-1), 0, 5).Draw(t, "spoils") {
		if len(s.APIServices) > 0 && len(s.Deployments) > 0 && len(s.Neighbours) > 0 && s.APIServices[0].Labels != nil &&
			len(s.Objects.Secrets.Items) > 0 {
			spoils[i](&s)
		}
	}
	return s
}

// applied applies actions to the APIServices of a Source.
func applied(s internalserving.Clients, actions []olmcore.Action) internalserving.Clients {
	s.APIServices = slices.Clone(s.APIServices)
	for _, a := range actions {
		switch a := a.(type) {
		case olmcore.Create:
			s.APIServices = append(s.APIServices, a.Object.DeepCopyObject().(*apiregistrationv1.APIService))
		case olmcore.Update:
			i := slices.IndexFunc(s.APIServices, func(x *apiregistrationv1.APIService) bool { return x == a.Before })
			s.APIServices[i] = a.After.DeepCopyObject().(*apiregistrationv1.APIService)
		}
	}
	return s
}

func writes(actions []olmcore.Action) []olmcore.Action {
	return slices.DeleteFunc(
		slices.Clone(actions),
		func(a olmcore.Action) bool { verb, _, _ := a.Describe(); return verb == olmcore.VerbDelete },
	)
}

func property(t *rapid.T) {
	s := spoiled(t)
	require.NoError(t, invariant.Laws(decided, inputOf(s)))

	install := writes(apiWrites(s))
	if s.Health().State == internalserving.Missing {
		require.NotEmpty(t, install, "what is said to be mended is")
	}
	after := applied(s, install)
	require.Empty(t, writes(apiWrites(after)), "once is enough")
	require.Empty(t, applied(s, s.Trust()).Trust(), "once is enough")
	require.NotEqual(t, internalserving.Missing, after.Health().State)
	for _, a := range append(s.Trust(), apiWrites(s)...) {
		u, ok := a.(olmcore.Update)
		if !ok {
			continue
		}
		one := s
		one.APIServices = []*apiregistrationv1.APIService{u.Before.(*apiregistrationv1.APIService)}
		require.Empty(t, one.Conflict(), "nothing of another is written")
		_, _, cause := u.Describe()
		if cause.Reason != internalserving.ReasonTrust {
			continue
		}
		restored := u.After.DeepCopyObject().(*apiregistrationv1.APIService)
		restored.Spec.CABundle = one.APIServices[0].Spec.CABundle
		require.True(t, equality.Semantic.DeepEqual(restored, u.Before), "the bundle alone changes")
	}
}

func TestLawsHoldForRandomInputs(t *testing.T) { rapid.Check(t, property) }

func FuzzDecisions(f *testing.F) { f.Fuzz(rapid.MakeFuzz(property)) }

// arbitrary checks the laws for objects with any content.
func arbitrary(t *rapid.T) {
	s := installedAPI()
	in := gen.Value[input](gen.Vocabulary{
		Now: csvtest.Now, Namespace: "ns", Names: []string{"cool.v2", "cool", "cool-service", "cool-service-cert", apiName}, Hostile: false,
		Words: map[string][]string{
			"group":          {"ice.example.com"},
			"version":        {"v1"},
			"deploymentname": {"cool"},
			"kind":           {"ClusterServiceVersion", "Ice"},
		},
	}).Draw(t, "input")
	if in.CSV == nil {
		in.CSV = s.CSV
	}
	in.Now = csvtest.Now
	internalserving.ProblemOfAPIServices(in.CSV)
	in.source().List()
	require.NoError(t, invariant.Pure(decided, in))
}

func TestLawsHoldForArbitraryObjects(t *testing.T) { rapid.Check(t, arbitrary) }

func FuzzObjects(f *testing.F) { f.Fuzz(rapid.MakeFuzz(arbitrary)) }

// FuzzBundles uses any bytes in place of certificates.
func FuzzBundles(f *testing.F) {
	f.Add(newCA, newCA, namedAuthority("leaf"), "x")
	f.Add(join(oldCA, newCA), newCA, []byte("garbage"), hashOf(newCA))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte{}, []byte{0xff}, "")
	f.Fuzz(func(t *testing.T, bundle, ca, leaf []byte, hash string) {
		s := changed(live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = bundle }), secret(func(o *corev1.Secret) {
			o.Data["olmCAKey"], o.Data["tls.crt"], o.Annotations["olmcahash"] = ca, leaf, hash
		}))
		problem, mendable := s.Issue()
		require.Equal(t, problem != "", mendable)
		if problem == "" {
			require.Contains(t, string(bundle), "BEGIN CERTIFICATE")
		}
		s.Health()
		apiWrites(s)
	})
}
