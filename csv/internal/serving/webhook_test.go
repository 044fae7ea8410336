// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

const (
	vName, mName = "v.example.com-akd23xweqi", "m.example.com-cszbx63pqh"
)

func TestInstallsOneWebhookOfEachType(t *testing.T) {
	s := source(operator(everything()...), crd("cools.example.com"))
	s.Account = account()
	s.Group.Spec.TargetNamespaces = []string{"ns"}
	labels := func(name, hash string) map[string]string {
		return map[string]string{
			"olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion",
			"olm.owner.uid": "uid-cool.v1", "olm.managed": "true",
			"olm.webhook-description-generate-name": name, "olm.webhook-description-hash": hash,
		}
	}
	client := admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "cool-service", Path: new("/cools"), Port: new(int32(443))},
		CABundle: first,
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"CREATE"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"cools"}},
	}}
	namespaces := &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorgroup.uid/group": ""}}
	none := new(admissionregistrationv1.SideEffectClassNone)
	v := &validatingConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: vName, Labels: labels("v.example.com", "5sVP5Iz8yREV4Z8qwTmfqzHhIWDUrom5JH0OWe")},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "v.example.com", ClientConfig: client, Rules: rules, NamespaceSelector: namespaces,
			SideEffects: none, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	m := &mutatingConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: mName, Labels: labels("m.example.com", "5jpQIYe1Mf4Tzg1Y26ETjJFE2nPySHrzV43b2W")},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "m.example.com", ClientConfig: client, Rules: rules, NamespaceSelector: namespaces,
			SideEffects: none, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	after := crd("cools.example.com")
	after.Annotations[mark] = "ns/cool.v1"
	after.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: "Webhook",
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service:  &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "cool-service", Path: new("/cools"), Port: new(int32(443))},
				CABundle: first,
			},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	create := func(o olmcore.Object, name string) olmcore.Create {
		return olmcore.Create{
			Target: olmcore.RefOf(o), Object: o, As: account(),
			Cause: olmcore.Cause{Reason: "Install", Message: "webhook " + name + " has no configuration"},
		}
	}
	want := []olmcore.Action{
		olmcore.UpdateOf(
			s.CRDs[0],
			after,
			olmcore.Cause{
				Reason:  "Install",
				Message: "the conversion of CRD cools.example.com does not match its description in ClusterServiceVersion cool.v1",
			},
		),
		create(m, "m.example.com"), create(v, "v.example.com"),
	}
	got, problem := s.Install()
	require.Empty(t, problem)
	require.Empty(t, cmp.Diff(want, got))
}

// byOLM returns a description and its configuration as OLM created it.
func byOLM(t testing.TB, changes ...func(o *validatingConfiguration)) (description, *validatingConfiguration) {
	w := describe("v.example.com", validating)
	return w, validated(t, "v.example.com-8k2xz", w, changes...)
}

func TestConfigurationsOfOLMAreKept(t *testing.T) {
	w, o := byOLM(t)
	s := source(operator(w), o)
	actions, problem := s.Install()
	require.Empty(t, problem)
	require.Empty(t, actions)
	require.Empty(t, s.Trust())
	state, why := healthOf(s)
	require.Equal(t, internalserving.Healthy, state, why)
}

// TestAdmissionWebhooks contains states of one validating webhook. For each it checks the writes of an installation or
// the problem that prevents it, the writes without an installation, and the health before.
func TestAdmissionWebhooks(t *testing.T) {
	type row struct {
		csv     func(c *v1alpha1.ClusterServiceVersion)
		source  func(s *internalserving.Clients)
		observe func(o *validatingConfiguration) []olmcore.Object
		install []string
		problem string
		trust   []string
		state   internalserving.State
		why     string
	}
	is := func(change func(o *validatingConfiguration)) func(o *validatingConfiguration) []olmcore.Object {
		return func(o *validatingConfiguration) []olmcore.Object { change(o); return []olmcore.Object{o} }
	}
	absent := func(*validatingConfiguration) []olmcore.Object { return nil }
	kept := func(o *validatingConfiguration) []olmcore.Object { return []olmcore.Object{o} }
	const olms = "v.example.com-8k2xz"
	update, create := []string{
		"update ValidatingWebhookConfiguration " + olms + " (Install)",
	}, []string{
		"create ValidatingWebhookConfiguration " + vName + " (Install)",
	}
	follow := []string{"update ValidatingWebhookConfiguration " + olms + " (Trust)"}
	remove := []string{"delete ValidatingWebhookConfiguration " + olms + " (RemovedFromSpec)"}
	beside := func(change func(o *validatingConfiguration)) func(o *validatingConfiguration) []olmcore.Object {
		return func(o *validatingConfiguration) []olmcore.Object {
			other := o.DeepCopy()
			change(other)
			return []olmcore.Object{o, other}
		}
	}
	gone := []string{"delete ValidatingWebhookConfiguration gone (RemovedFromSpec)"}
	unlabelled := "ValidatingWebhookConfiguration " + olms + " has no label olm.webhook-description-generate-name"
	for name, c := range map[string]row{
		"nothing":        {observe: absent, install: create, state: internalserving.Missing},
		"created by OLM": {observe: kept, state: internalserving.Healthy},
		"of another description": {
			observe: is(func(o *validatingConfiguration) { o.Labels["olm.webhook-description-hash"] = "x" }), install: update,
			state: internalserving.Missing,
		},
		"without hash": {
			observe: is(func(o *validatingConfiguration) { delete(o.Labels, "olm.webhook-description-hash") }), install: update,
			state: internalserving.Missing,
		},
		"not managed": {
			observe: is(func(o *validatingConfiguration) { delete(o.Labels, "olm.managed") }), install: update, state: internalserving.Healthy,
		},
		"with labels of others": {observe: is(func(o *validatingConfiguration) { o.Labels["x"] = "y" }), state: internalserving.Healthy},
		"edited": {
			observe: is(func(o *validatingConfiguration) { o.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore) }), install: update,
			state: internalserving.Healthy,
		},
		"with a condition": {observe: is(func(o *validatingConfiguration) {
			o.Webhooks[0].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "x", Expression: "false"}}
		}), install: update, state: internalserving.Healthy},
		"with a second webhook": {
			observe: is(func(o *validatingConfiguration) { o.Webhooks = append(o.Webhooks, o.Webhooks[0]) }), install: update,
			state: internalserving.Healthy,
		},
		"without webhooks": {
			observe: is(func(o *validatingConfiguration) { o.Webhooks = nil }), install: update, state: internalserving.Missing,
		},
		"calling another service": {
			observe: is(func(o *validatingConfiguration) { o.Webhooks[0].ClientConfig.Service.Name = "x" }), install: update,
			state: internalserving.Missing,
		},
		"calling a URL": {observe: is(func(o *validatingConfiguration) {
			o.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new("https://x")}
		}), install: update, state: internalserving.Missing},
		"without a bundle": {
			observe: is(func(o *validatingConfiguration) { o.Webhooks[0].ClientConfig.CABundle = nil }), install: update, trust: follow,
			state: internalserving.Missing,
		},
		"with another authority": {
			observe: is(func(o *validatingConfiguration) { o.Webhooks[0].ClientConfig.CABundle = second }), install: update, trust: follow,
			state: internalserving.Missing,
		},
		"with two authorities": {
			observe: is(func(o *validatingConfiguration) { o.Webhooks[0].ClientConfig.CABundle = append(second, first...) }), install: update,
			trust: follow, state: internalserving.Healthy,
		},
		"for other namespaces": {observe: is(func(o *validatingConfiguration) {
			o.Webhooks[0].NamespaceSelector.MatchLabels = map[string]string{"x": "y"}
		}), install: update, trust: follow, state: internalserving.Healthy},
		"twice": {observe: func(o *validatingConfiguration) []olmcore.Object {
			other := o.DeepCopy()
			other.Name, other.Labels["olm.webhook-description-hash"] = "v.example.com-zzzzz", "x"
			return []olmcore.Object{other, o}
		}, install: []string{"update ValidatingWebhookConfiguration v.example.com-zzzzz (Install)"}, state: internalserving.Healthy},
		"being deleted": {
			observe: is(func(o *validatingConfiguration) { o.DeletionTimestamp = csvtest.Ago(0) }), install: create, state: internalserving.Missing,
		},
		"of another incarnation": {
			observe: is(func(o *validatingConfiguration) { o.Labels["olm.owner.uid"] = "x" }), install: create, state: internalserving.Missing,
		},
		"of another version": {
			observe: is(func(o *validatingConfiguration) { o.Labels["olm.owner"] = "cool.v0" }), install: create, state: internalserving.Missing,
		},
		"of another namespace": {
			observe: is(func(o *validatingConfiguration) { o.Labels["olm.owner.namespace"] = "x" }), install: create, state: internalserving.Missing,
		},
		"of an unknown webhook": {
			observe: is(func(o *validatingConfiguration) { delete(o.Labels, "olm.webhook-description-generate-name") }), problem: unlabelled,
			state: internalserving.Failing, why: unlabelled,
		},
		"of a removed description": {
			observe: is(func(o *validatingConfiguration) { o.Labels["olm.webhook-description-generate-name"] = "x" }), install: create,
			state: internalserving.Missing,
		},
		"of a description that mutates now": {csv: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions[0].Type = mutating },
			observe: kept,
			install: []string{"create MutatingWebhookConfiguration v.example.com-qtky6muaia (Install)"}, state: internalserving.Missing},
		"of a removed description, and the others exist": {observe: beside(func(o *validatingConfiguration) {
			o.Name, o.Labels["olm.webhook-description-generate-name"] = "gone", "x"
		}),
			install: gone, trust: gone, state: internalserving.Healthy},
		"of a removed description, with another authority": {observe: beside(func(o *validatingConfiguration) {
			o.Name, o.Labels["olm.webhook-description-generate-name"], o.Webhooks[0].ClientConfig.CABundle = "gone", "x", second
		}), install: gone, trust: gone, state: internalserving.Healthy},
		"of a removed description, and the others are refused": {csv: func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.WebhookDefinitions[0].TimeoutSeconds = new(int32(31))
		},
			observe: beside(func(o *validatingConfiguration) {
				o.Name, o.Labels["olm.webhook-description-generate-name"] = "gone", "x"
			}),
			problem: `webhook description "v.example.com": timeoutSeconds: 31 is outside 1-30`, state: internalserving.Missing},
		"being deleted, of a removed description": {observe: is(func(o *validatingConfiguration) {
			o.Labels["olm.webhook-description-generate-name"], o.DeletionTimestamp = "x", csvtest.Ago(0)
		}), install: create, state: internalserving.Missing},
		"of another owner, with the name": {
			observe: is(func(o *validatingConfiguration) { o.Name, o.Labels = vName, nil }), state: internalserving.Missing,
			problem: "ValidatingWebhookConfiguration " + vName + " exists and does not belong to ClusterServiceVersion cool.v1"},
		"of another owner, with the name, which is not needed": {observe: func(o *validatingConfiguration) []olmcore.Object {
			other := o.DeepCopy()
			other.Name, other.Labels = vName, nil
			return []olmcore.Object{other, o}
		}, state: internalserving.Healthy},
		"being deleted, with the name": {observe: is(func(o *validatingConfiguration) { o.Name, o.DeletionTimestamp = vName, csvtest.Ago(0) }),
			state:   internalserving.Missing,
			problem: "ValidatingWebhookConfiguration " + vName + " is being deleted"},
		"with the name, relabelled": {observe: is(func(o *validatingConfiguration) {
			o.Name, o.Labels["olm.webhook-description-generate-name"] = vName, "x"
		}), state: internalserving.Missing,
			install: []string{"update ValidatingWebhookConfiguration " + vName + " (Install)"}},
		"with the name, without its label": {observe: is(func(o *validatingConfiguration) {
			o.Name = vName
			delete(o.Labels, "olm.webhook-description-generate-name")
		}), install: []string{"update ValidatingWebhookConfiguration " + vName + " (Install)"}, state: internalserving.Failing,
			why: "ValidatingWebhookConfiguration " + vName + " has no label olm.webhook-description-generate-name"},

		"no group": {source: func(s *internalserving.Clients) { s.Group = nil },
			observe: absent, problem: "error retrieving OperatorGroup info", state: internalserving.Missing},
		"a group without UID": {source: func(s *internalserving.Clients) { s.Group.UID = "" },
			observe: absent, problem: "error retrieving OperatorGroup info", state: internalserving.Missing},
		"the group was deleted": {source: func(s *internalserving.Clients) { s.Group = nil },
			observe: kept, problem: "error retrieving OperatorGroup info", state: internalserving.Healthy},
		"no certificate": {source: func(s *internalserving.Clients) { s.Certificates = backends{} },
			observe: absent, state: internalserving.Waiting},
		"no backends": {
			source: func(s *internalserving.Clients) { s.Certificates = nil }, observe: absent, state: internalserving.Waiting,
		},
		"the certificate was deleted": {
			source: func(s *internalserving.Clients) { s.Certificates = backends{} }, observe: kept, state: internalserving.Healthy,
		},
		"during a certificate rotation": {source: func(s *internalserving.Clients) { s.Certificates = follower{first, second} },
			observe: kept, install: update, trust: follow, state: internalserving.Healthy},
		"during a certificate rotation, without clients": {source: func(s *internalserving.Clients) { s.Certificates = follower{first, second} },
			observe: absent, state: internalserving.Waiting},
		"the validating list was not read": {
			source: func(s *internalserving.Clients) { s.Objects.ValidatingWebhookConfigurations.Complete = false }, observe: absent,
			problem: "not read: ValidatingWebhookConfigurations", state: internalserving.NotObserved, why: "ValidatingWebhookConfigurations"},
		"no list was read": {source: func(s *internalserving.Clients) {
			s.Objects.ValidatingWebhookConfigurations.Complete, s.Objects.MutatingWebhookConfigurations.Complete = false, false
		}, observe: absent, problem: "not read: ValidatingWebhookConfigurations, MutatingWebhookConfigurations",
			state: internalserving.NotObserved,
			why:   "ValidatingWebhookConfigurations, MutatingWebhookConfigurations"},
		"no webhook, and no list was read": {csv: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions = nil }, source: func(
			s *internalserving.Clients,
		) {
			s.Objects.ValidatingWebhookConfigurations.Complete, s.Objects.MutatingWebhookConfigurations.Complete = false, false
		}, observe: absent, state: internalserving.Healthy},
		"the webhook was removed": {
			csv: func(c *v1alpha1.ClusterServiceVersion) { c.Spec.WebhookDefinitions = nil }, observe: kept, install: remove, trust: remove,
			state: internalserving.Healthy,
		},
		"with an account": {source: func(s *internalserving.Clients) { s.Account = account() }, observe: absent,
			install: []string{"create ValidatingWebhookConfiguration " + vName + " (Install) as limited"}, state: internalserving.Missing},
		"outdated, with an account": {source: func(s *internalserving.Clients) { s.Account = account() }, observe: is(
			func(o *validatingConfiguration) { o.Webhooks[0].ClientConfig.CABundle = second },
		),
			install: []string{"update ValidatingWebhookConfiguration " + olms + " (Install) as limited"},
			trust:   []string{"update ValidatingWebhookConfiguration " + olms + " (Trust) as limited"}, state: internalserving.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := byOLM(t)
			s := source(operator(w), c.observe(o)...)
			if c.csv != nil {
				c.csv(s.CSV)
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
			require.Equal(t, c.why, why)
		})
	}
}

// TestContentsOfConfigurations checks which parts of a description, of its Deployment and of the OperatorGroup a
// configuration contains.
func TestContentsOfConfigurations(t *testing.T) {
	own, selected := operatorsv1.OperatorGroupSpec{
		TargetNamespaces: []string{"ns"},
	}, operatorsv1.OperatorGroupSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
	}
	both := own
	both.Selector = selected.Selector
	marked := &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorgroup.uid/group": ""}}
	dotted := func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name, c.Spec.WebhookDefinitions[0].DeploymentName = "co.ol", "co.ol"
	}
	w := func(change func(w *description)) func(c *v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) { change(&c.Spec.WebhookDefinitions[0]) }
	}
	none := func(*v1alpha1.ClusterServiceVersion) {}
	for name, c := range map[string]struct {
		csv   func(c *v1alpha1.ClusterServiceVersion)
		group operatorsv1.OperatorGroupSpec
		want  func(w *admissionregistrationv1.MutatingWebhook)
	}{
		"all namespaces":      {none, operatorsv1.OperatorGroupSpec{}, func(*admissionregistrationv1.MutatingWebhook) {}},
		"listed namespaces":   {none, own, func(w *admissionregistrationv1.MutatingWebhook) { w.NamespaceSelector = marked }},
		"selected namespaces": {none, selected, func(w *admissionregistrationv1.MutatingWebhook) { w.NamespaceSelector = selected.Selector }},
		"listed and selected": {none, both, func(w *admissionregistrationv1.MutatingWebhook) { w.NamespaceSelector = marked }},
		"a Deployment with a dot": {
			dotted, operatorsv1.OperatorGroupSpec{},
			func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Name = "co-ol-service" },
		},
		"no port": {
			w(func(w *description) { w.ContainerPort = 0 }), operatorsv1.OperatorGroupSpec{}, func(*admissionregistrationv1.MutatingWebhook) {},
		},
		"another port and target": {w(func(w *description) { w.ContainerPort, w.TargetPort = 9443, new(intstr.FromString("https")) }),
			operatorsv1.OperatorGroupSpec{},
			func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Port = new(int32(9443)) }},
		"no path": {
			w(func(w *description) { w.WebhookPath = nil }), operatorsv1.OperatorGroupSpec{},
			func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.Service.Path = nil },
		},
		"everything else": {w(func(w *description) {
			w.FailurePolicy, w.MatchPolicy, w.ReinvocationPolicy = new(admissionregistrationv1.Ignore), new(admissionregistrationv1.Exact), new(
				admissionregistrationv1.IfNeededReinvocationPolicy,
			)
			w.ObjectSelector, w.TimeoutSeconds, w.AdmissionReviewVersions = selected.Selector, new(int32(3)), []string{"v1", "v1beta1"}
			w.SideEffects, w.Rules = new(admissionregistrationv1.SideEffectClassNoneOnDryRun), nil
		}), operatorsv1.OperatorGroupSpec{}, func(w *admissionregistrationv1.MutatingWebhook) {
			w.FailurePolicy, w.MatchPolicy, w.ReinvocationPolicy = new(admissionregistrationv1.Ignore), new(admissionregistrationv1.Exact), new(
				admissionregistrationv1.IfNeededReinvocationPolicy,
			)
			w.ObjectSelector, w.TimeoutSeconds, w.AdmissionReviewVersions = selected.Selector, new(int32(3)), []string{"v1", "v1beta1"}
			w.SideEffects, w.Rules = new(admissionregistrationv1.SideEffectClassNoneOnDryRun), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(operator(describe("m.example.com", mutating)), crd("cools.example.com"))
			plain, _ := s.Install()
			want := plain[0].(olmcore.Create).Object.(*mutatingConfiguration).Webhooks[0].DeepCopy()
			c.want(want)
			c.csv(s.CSV)
			s.Group, s.Certificates = group(c.group), backends{"cool": first, "co.ol": first}
			require.Empty(t, internalserving.ProblemOfWebhooks(s.CSV))
			actions, problem := s.Install()
			require.Empty(t, problem)
			require.Empty(
				t,
				cmp.Diff([]admissionregistrationv1.MutatingWebhook{*want}, actions[0].(olmcore.Create).Object.(*mutatingConfiguration).Webhooks),
			)

			objects := installed(t, s)
			s.Objects.MutatingWebhookConfigurations.Items = []*mutatingConfiguration{objects[len(objects)-1].(*mutatingConfiguration)}
			actions, problem = s.Install()
			require.Empty(t, problem)
			require.Empty(t, lines(actions), "the API server's defaults are no difference")
			state, _ := healthOf(s)
			require.Equal(t, internalserving.Healthy, state)
		})
	}
}

// TestInvalidWebhooksAreNotInstalled checks that an installation validates the webhooks again, because the spec may
// have changed since they were judged.
func TestInvalidWebhooksAreNotInstalled(t *testing.T) {
	bad := describe("bad.example.com", validating, func(w *description) { w.Rules[0].APIGroups = []string{"*"} })
	s := source(operator(append(everything(), bad)...), crd("cools.example.com"))
	actions, problem := s.Install()
	require.Empty(t, actions)
	require.Equal(t, allGroups, problem)
}

func TestNamesOfConfigurations(t *testing.T) {
	c := operator(everything()...)
	v, m := internalserving.ConfigurationNames(c)
	require.Equal(t, []string{vName}, v)
	require.Equal(t, []string{mName}, m)
	c.UID = "next"
	v, _ = internalserving.ConfigurationNames(c)
	require.NotEqual(t, []string{vName}, v, "the next incarnation does not meet what the one before leaves")
}
