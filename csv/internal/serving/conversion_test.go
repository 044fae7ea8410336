// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// converted returns a CRD that is converted as the operator describes it.
func converted(changes ...func(crd *definition)) *definition {
	return crd("cools.example.com", append([]func(*definition){func(crd *definition) {
		crd.Spec.Conversion = csvtest.Conversion()
		w := crd.Spec.Conversion.Webhook
		w.ConversionReviewVersions = []string{"v1"}
		w.ClientConfig.CABundle, w.ClientConfig.Service.Path, w.ClientConfig.Service.Port = first, new("/cools"), new(int32(443))
	}}, changes...)...)
}

// config changes the client configuration of a conversion.
func config(change func(c *apiextensionsv1.WebhookClientConfig)) func(crd *definition) {
	return func(crd *definition) { change(crd.Spec.Conversion.Webhook.ClientConfig) }
}

func trusting(bundle []byte) func(crd *definition) {
	return config(func(c *apiextensionsv1.WebhookClientConfig) { c.CABundle = bundle })
}

func recorded(values ...string) func(crd *definition) {
	return func(crd *definition) {
		crd.Annotations = map[string]string{}
		for _, value := range values {
			crd.Annotations["operatorframework.io/installed-alongside-"+value[len(value)-1:]] = value
		}
	}
}

// converter records on a CRD which version set its conversion.
func converter(version string) func(crd *definition) {
	return func(crd *definition) { metav1.SetMetaDataAnnotation(&crd.ObjectMeta, mark, version) }
}

// TestConversions contains states of a CRD. For each it checks what an installation does about its conversion or why it
// cannot, the writes without an installation, and the health before.
func TestConversions(t *testing.T) {
	const tooMany = "CRD cools.example.com was also installed with ClusterServiceVersion other/a; to allow the " +
		"conversion, a cluster administrator can run: kubectl annotate crd cools.example.com olmcore/converted-by=ns/cool.v1 --overwrite"
	const command = "to allow it, a cluster administrator can run: " +
		"kubectl annotate crd cools.example.com olmcore/converted-by=ns/cool.v1 --overwrite"
	const unrecorded = "no InstallPlan recorded CRD cools.example.com, so its conversion is not changed; " + command
	const preserves = "crd.Spec.PreserveUnknownFields must be false to let API Server call webhook to do the conversion"
	const notYet = ", and no InstallPlan has installed it for cool.v1 yet"
	update, follow := []string{
		"update CustomResourceDefinition cools.example.com (Install)",
	}, []string{
		"update CustomResourceDefinition cools.example.com (Trust)",
	}
	plain := crd("cools.example.com")
	service := func(namespace, name string) func(*definition) {
		return config(func(c *apiextensionsv1.WebhookClientConfig) { c.Service.Namespace, c.Service.Name = namespace, name })
	}
	url := config(func(c *apiextensionsv1.WebhookClientConfig) {
		*c = apiextensionsv1.WebhookClientConfig{URL: new("https://x"), CABundle: second}
	})
	limited := func(s *internalserving.Clients) { s.Account, s.Group.Spec.ServiceAccountName = account(), "limited" }
	for name, c := range map[string]struct {
		crd     *definition
		source  func(s *internalserving.Clients)
		install []string
		problem string
		trust   []string
		state   internalserving.State
	}{
		"not converted": {crd: plain, install: update, state: internalserving.Failing},
		"converted":     {crd: converted(), state: internalserving.Healthy},
		"by None": {crd: converted(func(crd *definition) {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: "None"}
		}), install: update, state: internalserving.Failing},
		"by an incomplete webhook": {crd: converted(func(crd *definition) { crd.Spec.Conversion.Webhook = nil }),
			install: update, state: internalserving.Failing},
		"by nothing": {crd: converted(func(crd *definition) { crd.Spec.Conversion.Webhook.ClientConfig = nil }),
			install: update, state: internalserving.Failing},
		"on another path": {crd: converted(config(func(c *apiextensionsv1.WebhookClientConfig) { c.Service.Path = nil })),
			install: update, state: internalserving.Healthy},
		"without port": {crd: converted(config(func(c *apiextensionsv1.WebhookClientConfig) { c.Service.Port = nil })),
			state: internalserving.Healthy},
		"without a bundle":       {crd: converted(trusting(nil)), install: update, trust: follow, state: internalserving.Failing},
		"with another authority": {crd: converted(trusting(second)), install: update, trust: follow, state: internalserving.Failing},
		"with two authorities": {
			crd: converted(trusting(append(second, first...))), install: update, trust: follow, state: internalserving.Healthy,
		},
		"by another service": {crd: converted(service("ns", "x")), install: update, state: internalserving.Healthy},
		"by another service, while the version is being installed": {crd: converted(service("ns", "x")), source: func(
			s *internalserving.Clients,
		) {
			s.CSV.Status.Phase = csvtest.Installing
		}, install: update, state: internalserving.Failing},
		"by the service of the previous version": {crd: converted(service("ns", "x"), converter("ns/cool.v0")),
			install: update, state: internalserving.Failing},
		"by the service of the previous version, during a certificate rotation": {crd: converted(service("ns", "x"), converter("ns/cool.v0")),
			source: func(s *internalserving.Clients) { s.Certificates = follower{first, second} }, state: internalserving.Waiting},
		"by another service, since this version was called": {crd: converted(service("ns", "x"), converter("ns/cool.v1")), install: update,
			state: internalserving.Healthy},
		"by the service of a version of another namespace": {crd: converted(service("ns", "x"), converter("other/cool.v0")), install: update,
			state: internalserving.Healthy},
		"by another namespace": {crd: converted(service("x", "cool-service")), install: update, state: internalserving.Healthy},
		"by a URL":             {crd: converted(url), install: update, state: internalserving.Healthy},
		"in other versions": {crd: converted(func(crd *definition) {
			crd.Spec.Conversion.Webhook.ConversionReviewVersions = []string{"v1beta1"}
		}), install: update, state: internalserving.Healthy},
		"absent": {problem: "CRD cools.example.com does not exist", state: internalserving.Failing},
		"being deleted": {crd: converted(func(crd *definition) { crd.DeletionTimestamp = csvtest.Ago(0) }),
			problem: "CRD cools.example.com is being deleted", state: internalserving.Healthy},
		"keeping unknown fields": {crd: converted(func(crd *definition) { crd.Spec.PreserveUnknownFields = true }),
			problem: preserves, state: internalserving.Healthy},
		"during a certificate rotation": {crd: converted(),
			source: func(s *internalserving.Clients) { s.Certificates = follower{first, second} }, install: update,
			trust: follow, state: internalserving.Healthy},
		"during a certificate rotation, without clients": {crd: plain,
			source: func(s *internalserving.Clients) { s.Certificates = follower{first, second} }, state: internalserving.Waiting},
		"of another incarnation's namespace": {crd: converted(recorded("other/cool.v1")), state: internalserving.Healthy},
		"of another CSV, and not recorded for this one yet": {crd: crd("cools.example.com", recorded("z/b", "other/a")),
			problem: "CRD cools.example.com was installed with ClusterServiceVersion other/a" + notYet, state: internalserving.Failing},
		"of another CSV, and outdated": {crd: converted(recorded("other/cool.v1"), trusting(second)),
			problem: "CRD cools.example.com was installed with ClusterServiceVersion other/cool.v1" + notYet, state: internalserving.Failing},
		"of the next version": {crd: converted(recorded("ns/cool.v2"), trusting(second)),
			install: update, trust: follow, state: internalserving.Failing},
		"of the next version, with an account": {crd: converted(recorded("ns/cool.v2"), trusting(second)), source: limited,
			problem: "CRD cools.example.com was installed with ClusterServiceVersion ns/cool.v2" + notYet, state: internalserving.Failing},
		"of the next version, and of another namespace": {crd: converted(recorded("ns/cool.v2", "other/b"), trusting(second)), trust: follow,
			problem: "CRD cools.example.com was installed with ClusterServiceVersion other/b" + notYet, state: internalserving.Failing},
		"of the previous version, and of another namespace": {crd: converted(recorded("ns/cool.v0", "other/b"), trusting(second)), trust: follow,
			source:  func(s *internalserving.Clients) { s.CSV.Spec.Replaces = "cool.v0" },
			problem: "CRD cools.example.com was installed with ClusterServiceVersion ns/cool.v0" + notYet, state: internalserving.Failing},
		"of another namespace, and converted by the previous version": {
			crd:     converted(recorded("other/b"), converter("ns/cool.v0"), trusting(second)),
			trust:   follow,
			problem: "CRD cools.example.com was installed with ClusterServiceVersion other/b" + notYet, state: internalserving.Failing},
		"of another namespace, with an account": {crd: converted(recorded("ns/cool.v2", "other/b"), trusting(second)), source: limited,
			problem: "CRD cools.example.com was installed with ClusterServiceVersion ns/cool.v2" + notYet, state: internalserving.Failing},
		"of two": {
			crd: converted(recorded("other/a", "ns/cool.v1"), trusting(second)), install: update, trust: follow, state: internalserving.Failing,
		},
		"by labels": {
			crd:     crd("cools.example.com", recorded(), func(crd *definition) { crd.Labels = csvtest.Ours("").Labels }),
			install: update, state: internalserving.Failing,
		},
		"of two, and the other converts": {crd: converted(recorded("other/a", "ns/cool.v1"), service("other", "x")),
			state:   internalserving.Healthy,
			problem: tooMany},
		"of two, and nothing converts": {
			crd: crd("cools.example.com", recorded("other/a", "ns/cool.v1")), problem: tooMany, state: internalserving.Failing,
		},
		"of two, the other converts, and allowed": {
			crd:     converted(recorded("other/a", "ns/cool.v1"), service("other", "x"), converter("ns/cool.v1")),
			install: update, state: internalserving.Healthy,
		},
		"of two, and the first owner is of this namespace": {
			crd:     crd("cools.example.com", recorded("other/a", "ns/cool.v1"), firstInstalledBy("ns")),
			install: update, state: internalserving.Failing,
		},
		"of two, and the first owner is of this namespace, with an account": {
			crd:    crd("cools.example.com", recorded("other/a", "ns/cool.v1"), firstInstalledBy("ns")),
			source: limited, problem: tooMany, state: internalserving.Failing,
		},
		"of two, and the first owner is of another namespace": {
			crd:     crd("cools.example.com", recorded("other/a", "ns/cool.v1"), firstInstalledBy("other")),
			problem: tooMany, state: internalserving.Failing,
		},
		"of another namespace, and the annotation names this one": {
			crd:     crd("cools.example.com", recorded("other/a"), firstInstalledBy("ns")),
			problem: "CRD cools.example.com was installed with ClusterServiceVersion other/a" + notYet, state: internalserving.Failing,
		},
		"of two, and a third converts": {crd: converted(recorded("other/a", "ns/cool.v1"), service("x", "x")), problem: tooMany,
			state: internalserving.Healthy},
		"without a record": {crd: crd("cools.example.com", recorded()), problem: unrecorded, state: internalserving.Failing},
		"without a record, outdated": {
			crd: converted(recorded(), trusting(second)), install: follow, trust: follow, state: internalserving.Failing,
		},
		"without a record, on another path": {crd: converted(recorded(), config(func(c *apiextensionsv1.WebhookClientConfig) {
			c.Service.Path = new("/x")
		})), state: internalserving.Healthy},
		"without a record, by another service": {
			crd: converted(recorded(), service("ns", "x")), problem: unrecorded, state: internalserving.Healthy,
		},
		"without a record, by another namespace": {crd: converted(recorded(), service("x", "cool-service")),
			problem: unrecorded, state: internalserving.Healthy},
		"without a record, by a URL": {crd: converted(recorded(), url), problem: unrecorded, state: internalserving.Healthy},
		"of the next version, by a URL": {crd: converted(recorded("ns/cool.v2"), url), state: internalserving.Healthy,
			problem: "CRD cools.example.com is not converted by an operator of namespace ns"},
		"without a record, outdated, with an account": {
			crd: converted(recorded(), trusting(second)), source: limited, install: follow, trust: follow,
			state: internalserving.Failing},
		"without a record, with an account": {
			crd: crd("cools.example.com", recorded()), source: limited, problem: unrecorded, state: internalserving.Failing,
		},
		"without a record, with an account that writes": {crd: crd("cools.example.com", recorded()), state: internalserving.Failing,
			source: func(s *internalserving.Clients) { s.Account = account() }, problem: unrecorded},
		"without a record, with an account that is not confirmed": {crd: crd("cools.example.com", recorded()), state: internalserving.Failing,
			source: func(s *internalserving.Clients) { s.Group.Spec.ServiceAccountName = "limited" }, problem: unrecorded},
		"without a record, without a group": {
			crd: crd("cools.example.com", recorded()), source: func(s *internalserving.Clients) { s.Group = nil }, state: internalserving.Failing,
			problem: "error retrieving OperatorGroup info"},
		"allowed": {crd: crd("cools.example.com", recorded(), converter("ns/cool.v1")), install: update, state: internalserving.Failing},
		"allowed, with an account": {crd: crd("cools.example.com", recorded(), converter("ns/cool.v1")), source: limited,
			install: update, state: internalserving.Failing},
		"allowed, and another converts": {
			crd: converted(recorded(), url, converter("ns/cool.v1")), install: update, state: internalserving.Healthy,
		},
		"the previous version is allowed": {crd: crd("cools.example.com", recorded(), converter("ns/cool.v0")), install: update,
			source: func(s *internalserving.Clients) { s.CSV.Spec.Replaces = "cool.v0" }, state: internalserving.Failing},
		"the previous version is allowed, with an account": {crd: crd("cools.example.com", recorded(), converter("ns/cool.v0")), install: update,
			source: func(s *internalserving.Clients) {
				limited(s)
				s.CSV.Spec.Replaces = "cool.v0"
			}, state: internalserving.Failing},
		"another of the namespace is allowed": {crd: crd("cools.example.com", recorded(), converter("ns/warm")), install: update,
			state: internalserving.Failing},
		"another of the namespace is allowed, with an account": {crd: crd("cools.example.com", recorded(), converter("ns/warm")), source: limited,
			problem: unrecorded, state: internalserving.Failing},
		"one of another namespace is allowed": {crd: crd("cools.example.com", recorded(), converter("other/cool.v1")), problem: unrecorded,
			state: internalserving.Failing},
		"allowed, and of another CSV": {crd: crd("cools.example.com", recorded("other/b"), converter("ns/cool.v1")),
			state:   internalserving.Failing,
			problem: "CRD cools.example.com was installed with ClusterServiceVersion other/b" + notYet},
		"with an account": {crd: plain, source: limited, install: update, state: internalserving.Failing},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(operator(describe("c", conversion)))
			if c.crd != nil {
				observe(&s, c.crd)
			}
			if c.source != nil {
				c.source(&s)
			}
			actions, problem := s.Install()
			require.Equal(t, c.problem, problem)
			require.Empty(t, cmp.Diff(c.install, lines(actions)), "Install")
			require.Empty(t, cmp.Diff(c.trust, lines(s.Trust())), "Trust")
			state, why := healthOf(s)
			require.Equal(t, c.state, state)
			require.Equal(t, c.state == internalserving.Failing, why == "conversionWebhook not ready")
		})
	}
}

// mark is the annotation with the version that set the conversion of a CRD.
const mark = "olmcore/converted-by"

// TestConvertedCRDRecordsItsConverter checks that a CRD whose conversion the controller changed records the CSV of the
// operator, so that the conversion can be removed later. The next version takes it over.
func TestConvertedCRDRecordsItsConverter(t *testing.T) {
	s := source(operator(describe("c", conversion)), crd("cools.example.com", recorded(), converter("ns/cool.v1")))
	actions, problem := s.Install()
	require.Empty(t, problem)
	require.Len(t, actions, 1)
	after := actions[0].(olmcore.Update).After.(*definition)
	require.Equal(t, map[string]string{mark: "ns/cool.v1"}, after.Annotations)

	s.CRDs = []*definition{after}
	actions, problem = s.Install()
	require.Empty(t, problem)
	require.Empty(t, actions)

	s.CSV = s.CSV.DeepCopy()
	s.CSV.Name, s.CSV.Spec.Replaces = "cool.v2", "cool.v1"
	actions, problem = s.Install()
	require.Empty(t, problem)
	require.Len(t, actions, 1)
	next := actions[0].(olmcore.Update).After.(*definition)
	require.Equal(t, map[string]string{mark: "ns/cool.v2"}, next.Annotations)
	require.Equal(t, after.Spec, next.Spec)

	actions, problem = source(s.CSV, converted(recorded())).Install()
	require.Empty(t, problem)
	require.Empty(t, actions, "what another made is not marked")
	actions, problem = source(
		operator(describe("c", conversion)),
		converted(func(crd *definition) { crd.Annotations[mark] = "ns/cool.v0" }),
	).Install()
	require.Empty(t, problem)
	require.Len(t, actions, 1)
	require.Equal(t, "ns/cool.v1", actions[0].(olmcore.Update).After.GetAnnotations()[mark], "also one that came with an InstallPlan")
}

// TestConversionRemovedFromSpecIsReverted checks that a conversion is reverted if the controller set it and the CRD
// still calls the operator.
func TestConversionRemovedFromSpecIsReverted(t *testing.T) {
	marked := func(crd *definition) { metav1.SetMetaDataAnnotation(&crd.ObjectMeta, mark, "ns/cool.v1") }
	calling := func(namespace, name string) func(*definition) {
		return config(func(c *apiextensionsv1.WebhookClientConfig) { c.Service.Namespace, c.Service.Name = namespace, name })
	}
	revert := []string{"update CustomResourceDefinition cools.example.com (RemovedFromSpec)"}
	for name, c := range map[string]struct {
		webhooks []description
		crd      *definition
		want     []string
	}{
		"nothing is described":         {nil, converted(marked), revert},
		"another webhook is described": {[]description{describe("v.example.com", validating)}, converted(marked), revert},
		"the conversion is described":  {[]description{describe("c", conversion)}, converted(marked), nil},
		"the bundle or a user set it":  {nil, converted(), nil},
		"another version set it": {
			nil, converted(func(crd *definition) { metav1.SetMetaDataAnnotation(&crd.ObjectMeta, mark, "ns/cool.v2") }), nil,
		},
		"another service is called now":                {nil, converted(marked, calling("ns", "other")), nil},
		"a service of another namespace is called now": {nil, converted(marked, calling("other", "cool-service")), nil},
		"no webhook is called":                         {nil, crd("cools.example.com", marked), nil},
		"the CRD is being deleted": {
			nil, converted(marked, func(crd *definition) { crd.DeletionTimestamp = &metav1.Time{} }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			actions := source(operator(c.webhooks...), c.crd).Trust()
			require.Empty(t, cmp.Diff(c.want, lines(actions)))
			if c.want != nil {
				after := actions[0].(olmcore.Update).After.(*definition)
				require.Equal(t, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}, after.Spec.Conversion)
				require.NotContains(t, after.Annotations, mark)
			}
		})
	}
}

// TestKeptConversionIsReported checks the Diagnostic about a CRD that calls the operator and that no InstallPlan
// recorded.
func TestKeptConversionIsReported(t *testing.T) {
	const kept = "no InstallPlan recorded the CRDs cools.example.com, so only the caBundle of their conversion is updated; " +
		"to allow other changes, a cluster administrator can run: " +
		"kubectl annotate crd cools.example.com olmcore/converted-by=ns/cool.v1 --overwrite"
	for want, crds := range map[string][]*definition{
		kept: {converted(recorded())},
		"":   {converted(), converted(recorded(), converter("ns/cool.v1")), converted(recorded("other/b")), crd("cools.example.com", recorded())},
	} {
		for _, crd := range crds {
			reported := source(operator(describe("c", conversion)), crd).Diagnostics()
			if want == "" {
				require.Empty(t, reported)
				continue
			}
			require.Len(t, reported, 1)
			require.Equal(t, internalserving.ReasonConversionKept, reported[0].Reason)
			require.Equal(t, want, reported[0].Message)
		}
	}
}

func TestNoCRDIsChangedIfOneIsRefused(t *testing.T) {
	w := describe("c", conversion)
	w.ConversionCRDs = []string{"a.example.com", "b.example.com"}
	keeping := func(crd *definition) { crd.Spec.PreserveUnknownFields = true }
	s := source(operator(w), crd("a.example.com"), crd("b.example.com", keeping))
	actions, problem := s.Install()
	require.Empty(t, actions)
	require.NotEmpty(t, problem)

	s = source(operator(w, describe("v.example.com", validating)), crd("a.example.com"), crd("b.example.com"))
	s.Group = nil
	actions, problem = s.Install()
	require.Empty(t, actions, "nor when the namespaces of another webhook are unknown")
	require.NotEmpty(t, problem)
}

func TestCRDNamedTwiceIsWrittenOnce(t *testing.T) {
	twice := func(w *description) { w.ConversionCRDs = []string{"cools.example.com", "cools.example.com"} }
	actions, problem := source(operator(describe("c", conversion, twice)), crd("cools.example.com")).Install()
	require.Empty(t, problem)
	require.Len(t, actions, 1)
}

func TestWebhookOfAnotherDeploymentDropsOldAuthority(t *testing.T) {
	w, o := byOLM(t)
	c := operator(w, describe("other.example.com", mutating, func(w *description) { w.DeploymentName = "hot" }))
	c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = append(
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs,
		csvtest.DeploymentSpec("hot"),
	)
	o.Webhooks[0].ClientConfig.Service.Name, o.Webhooks[0].ClientConfig.CABundle = "hot-service", second
	s := source(c, o)
	s.Certificates = keeper{first}
	actions, problem := s.Install()
	require.Empty(t, problem)
	i := slices.Index(lines(actions), "update ValidatingWebhookConfiguration "+o.Name+" (Install)")
	after := actions[i].(olmcore.Update).After.(*validatingConfiguration)
	require.Equal(t, string(first), string(after.Webhooks[0].ClientConfig.CABundle))
}

func TestConversionByAnotherDeploymentDropsOldAuthority(t *testing.T) {
	s := source(
		operator(describe("c", conversion)),
		converted(config(func(c *apiextensionsv1.WebhookClientConfig) { c.Service.Name, c.CABundle = "x", second })),
	)
	s.Certificates = keeper{first}
	actions, _ := s.Install()
	require.Len(t, actions, 1)
	after := actions[0].(olmcore.Update).After.(*definition)
	require.Equal(t, string(first), string(after.Spec.Conversion.Webhook.ClientConfig.CABundle))
}

// keeper is a backend that keeps the caBundle of each client.
type keeper struct{ bundle []byte }

func (k keeper) Trust(_ string, have []byte) []byte {
	return append(have[:len(have):len(have)], k.bundle...)
}

// TestClientsOfOperator contains observed objects, and the clients that result from them.
func TestClientsOfOperator(t *testing.T) {
	v, m, c := describe("v.example.com", validating), describe("m.example.com", mutating), describe("c", conversion)
	missing := internalserving.Client{Service: "cool-service", Missing: true}
	calls := internalserving.Client{Service: "cool-service", Bundle: first}
	_, olms := byOLM(t)
	other := olms.DeepCopy()
	other.Name, other.Labels["olm.owner"], other.Webhooks[0].ClientConfig.CABundle = "old", "cool.v0", second
	foreign := olms.DeepCopy()
	foreign.Name, foreign.Labels["olm.owner.namespace"] = "foreign", "x"
	elsewhere := olms.DeepCopy()
	elsewhere.Name, elsewhere.Webhooks[0].ClientConfig.Service.Name = "elsewhere", "x"
	unlabelled := olms.DeepCopy()
	unlabelled.Name, unlabelled.Labels = "unlabelled", nil
	for name, c := range map[string]struct {
		webhooks []description
		objects  []olmcore.Object
		want     []internalserving.Client
	}{
		"none": {},
		"one of each that does not exist": {
			[]description{v, m, c}, []olmcore.Object{crd("cools.example.com")}, []internalserving.Client{missing, missing, missing},
		},
		"one that exists": {[]description{v}, []olmcore.Object{olms}, []internalserving.Client{calls}},
		"one that another version has": {
			[]description{v}, []olmcore.Object{other}, []internalserving.Client{{Service: "cool-service", Bundle: second}, missing},
		},
		"one that both have": {
			[]description{v}, []olmcore.Object{other, olms}, []internalserving.Client{{Service: "cool-service", Bundle: second}, calls},
		},
		"one of another namespace": {[]description{v}, []olmcore.Object{foreign}, []internalserving.Client{missing}},
		"one that calls another service": {
			[]description{v}, []olmcore.Object{elsewhere}, []internalserving.Client{missing}},
		"a configuration without owner labels": {
			[]description{v}, []olmcore.Object{unlabelled}, []internalserving.Client{missing}},
		"a CRD that does not exist": {[]description{c}, nil, nil},
		"a CRD that is converted": {
			[]description{c}, []olmcore.Object{converted()}, []internalserving.Client{calls}},
		"a CRD of the previous version": {
			[]description{c}, []olmcore.Object{converted(recorded("ns/cool.v0"))}, []internalserving.Client{calls}},
		"a CRD of another CSV": {[]description{c}, []olmcore.Object{converted(recorded("other/a"))}, nil},
		"a CRD of another CSV without a conversion": {
			[]description{c}, []olmcore.Object{crd("cools.example.com", recorded("other/a"))}, nil},
		"a CRD that another namespace serves": {
			[]description{c}, []olmcore.Object{converted(config(func(c *apiextensionsv1.WebhookClientConfig) { c.Service.Namespace = "x" }))}, nil,
		},
		"a CRD that is converted as the previous version described it": {
			[]description{v}, []olmcore.Object{olms, converted()}, []internalserving.Client{calls, calls},
		},
	} {
		t.Run(name, func(t *testing.T) {
			version := operator(c.webhooks...)
			version.Spec.Replaces = "cool.v0"
			s := source(version, c.objects...)
			s.Certificates = nil
			got := s.List()
			require.Empty(t, cmp.Diff(c.want, got))
		})
	}
}

// TestTrustUpdatesClientsOfEveryVersion checks that the caBundle of every client is updated. Otherwise no certificate
// could ever be replaced.
func TestTrustUpdatesClientsOfEveryVersion(t *testing.T) {
	_, olms := byOLM(t)
	old := olms.DeepCopy()
	old.Name, old.UID, old.Labels["olm.owner"] = "old", "old", "cool.v0"
	former := olms.DeepCopy()
	former.Name, former.UID, former.Labels["olm.owner.uid"] = "former", "former", "x"
	s := source(operator(describe("v.example.com", validating), describe("c", conversion)), old, former, olms, converted())
	s.Certificates = backends{"cool": second}
	require.Equal(t, []string{
		"update CustomResourceDefinition cools.example.com (Trust)", "update ValidatingWebhookConfiguration former (Trust)",
		"update ValidatingWebhookConfiguration old (Trust)", "update ValidatingWebhookConfiguration v.example.com-8k2xz (Trust)",
	}, lines(s.Trust()))
	for _, a := range s.Trust() {
		u := a.(olmcore.Update)
		switch before := u.Before.DeepCopyObject().(type) {
		case *validatingConfiguration:
			before.Webhooks[0].ClientConfig.CABundle = second
			require.Empty(t, cmp.Diff(before, u.After), "nothing else changes")
		case *definition:
			before.Spec.Conversion.Webhook.ClientConfig.CABundle = second
			require.Empty(t, cmp.Diff(before, u.After), "nothing else changes")
		}
	}
	actions, problem := s.Install()
	require.Empty(t, problem)
	require.Equal(t, []string{
		"update CustomResourceDefinition cools.example.com (Install)", "update ValidatingWebhookConfiguration former (Trust)",
		"update ValidatingWebhookConfiguration old (Trust)", "update ValidatingWebhookConfiguration v.example.com-8k2xz (Install)",
	}, lines(actions))
}

func TestNextVersionTakesOverConversion(t *testing.T) {
	next := csvtest.Operator("cool.v2", 2)
	next.Spec = operator(describe("c", conversion)).Spec
	next.Spec.Replaces = "cool.v1"
	s := source(next, converted(recorded("ns/cool.v1", "ns/cool.v2")))
	actions, problem := s.Install()
	require.Empty(t, problem)
	require.Empty(t, actions, "it converts already")

	s = source(next, converted(recorded("ns/cool.v1")))
	_, problem = s.Install()
	require.Empty(t, problem)
	s.CRDs[0].Spec.Conversion = nil
	_, problem = s.Install()
	const want = "CRD cools.example.com was installed with ClusterServiceVersion ns/cool.v1, " +
		"and no InstallPlan has installed it for cool.v2 yet"
	require.Equal(t, want, problem, "the CRD of the next version was not applied yet")

	// Until then, CRDs that call the operator still trust it, unless the group names the account that writes.
	s = source(next, converted(recorded("ns/cool.v1"), trusting(second)))
	require.Equal(t, []string{"update CustomResourceDefinition cools.example.com (Trust)"}, lines(s.Trust()))
	s.Group.Spec.ServiceAccountName = "limited"
	require.Empty(t, s.Trust())
	require.Empty(t, source(next, converted(recorded("other/a"), trusting(second))).Trust())
}
