// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// calledIn returns the Input of that operator in a cluster in which it is installed.
func calledIn(t testing.TB, cluster *fake.Cluster) csv.Input {
	t.Helper()
	in, err := csv.Gather(context.Background(), cluster, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
	return in
}

// changed replaces the first object of a list by a changed copy.
func changed[T interface {
	olmcore.Object
	DeepCopy() T
}](list *olmcore.Observed[T], change func(T)) {
	o := list.Items[0].DeepCopy()
	change(o)
	list.Items = append([]T{o}, list.Items[1:]...)
}

// faults contains problems of the objects around an operator with webhooks and an API.
var faults = map[string]func(in *csv.Input){
	"the APIService is gone": func(in *csv.Input) { in.APIServices.Items = nil },
	"the APIService is not available": func(in *csv.Input) {
		changed(&in.APIServices, func(a *apiregistrationv1.APIService) {
			a.Status.Conditions[0].Status = apiregistrationv1.ConditionFalse
		})
	},
	"the APIService belongs to another owner": func(in *csv.Input) {
		changed(&in.APIServices, func(a *apiregistrationv1.APIService) { a.Labels = map[string]string{"olm.owner": "other"} })
	},
	"the APIService calls another Service": func(in *csv.Input) {
		changed(&in.APIServices, func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "other" })
	},
	"the APIService calls none": func(in *csv.Input) {
		changed(&in.APIServices, func(a *apiregistrationv1.APIService) { a.Spec.Service = nil })
	},
	"the APIService trusts nothing": func(in *csv.Input) {
		changed(&in.APIServices, func(a *apiregistrationv1.APIService) { a.Spec.CABundle = nil })
	},
	"its Pods are starting": func(in *csv.Input) {
		changed(&in.APIServices, func(a *apiregistrationv1.APIService) {
			a.Status.Conditions[0].Status, a.Status.Conditions[0].LastTransitionTime = apiregistrationv1.ConditionFalse, metav1.NewTime(in.Now)
		})
		changed(&in.Deployments, func(d *appsv1.Deployment) { d.Status.UnavailableReplicas = 1 })
		in.Serving.Pods = olmcore.Found(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:         "ns",
				Name:              "p",
				UID:               "p",
				Labels:            map[string]string{"app": "cool"},
				CreationTimestamp: metav1.NewTime(in.Now),
			},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		})
	},
	"the ServiceAccounts are not read": func(in *csv.Input) { unread(&in.ServiceAccounts) },
	"the Secrets are not read":         func(in *csv.Input) { unread(&in.Serving.Secrets) },
	"the Service is gone":              func(in *csv.Input) { in.Serving.Services.Items = nil },
	"the Secret is gone":               func(in *csv.Input) { in.Serving.Secrets.Items = nil },
	"the Role is gone":                 func(in *csv.Input) { in.Serving.Roles.Items = nil },
	"the RoleBindings are gone":        func(in *csv.Input) { in.Serving.RoleBindings.Items = nil },
	"the ClusterRoleBinding is gone":   func(in *csv.Input) { in.Serving.ClusterRoleBindings.Items = nil },
	"the certificate is invalid": func(in *csv.Input) {
		changed(&in.Serving.Secrets, func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") })
	},
	"the authority is invalid":     func(in *csv.Input) { changed(&in.Serving.Secrets, func(s *corev1.Secret) { s.Data["olmCAKey"] = nil }) },
	"the certificate expires soon": func(in *csv.Input) { in.Now = in.Now.Add(serving.Validity - time.Hour) },
	"the certificate has expired":  func(in *csv.Input) { in.Now = in.Now.Add(serving.Validity + time.Hour) },
	"a webhook is gone":            func(in *csv.Input) { in.Serving.ValidatingWebhookConfigurations.Items = nil },
	"all webhooks are gone": func(in *csv.Input) {
		in.Serving.ValidatingWebhookConfigurations.Items, in.Serving.MutatingWebhookConfigurations.Items = nil, nil
	},
	"a webhook configuration has another name": func(in *csv.Input) {
		changed(&in.Serving.MutatingWebhookConfigurations, func(w *mutating) { delete(w.Labels, "olm.webhook-description-generate-name") })
	},
	"a webhook configuration belongs to another CSV": func(in *csv.Input) {
		changed(&in.Serving.MutatingWebhookConfigurations, func(w *mutating) { w.Labels["olm.owner"] = "other.v1" })
	},
	"a webhook configuration was edited": func(in *csv.Input) {
		changed(&in.Serving.MutatingWebhookConfigurations, func(w *mutating) { w.Labels["olm.webhook-description-hash"] = "x" })
	},
	"a webhook trusts nothing": func(in *csv.Input) {
		changed(&in.Serving.MutatingWebhookConfigurations, func(w *mutating) { w.Webhooks[0].ClientConfig.CABundle = nil })
	},
	"a webhook configuration without webhooks": func(in *csv.Input) {
		changed(&in.Serving.MutatingWebhookConfigurations, func(w *mutating) { w.Webhooks = nil })
	},
	"the CRD is converted by nothing": func(in *csv.Input) {
		changed(&in.CustomResourceDefinitions, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Conversion = nil })
	},
	"the Deployment has no hash": func(in *csv.Input) {
		changed(&in.Deployments, func(d *appsv1.Deployment) { delete(d.Spec.Template.Annotations, "olmcahash") })
	},
	"the Deployment is gone": func(in *csv.Input) { in.Deployments.Items = nil },
	"a description is added": func(in *csv.Input) {
		c := in.ClusterServiceVersion.DeepCopy()
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, csvtest.Webhook("more.example.com", v1alpha1.MutatingAdmissionWebhook))
		in.ClusterServiceVersion = c
	},
	"the spec no longer describes the webhooks": func(in *csv.Input) {
		c := in.ClusterServiceVersion.DeepCopy()
		c.Spec.WebhookDefinitions = nil
		in.ClusterServiceVersion = c
	},
	"the spec no longer describes webhooks or APIServices": func(in *csv.Input) {
		c := in.ClusterServiceVersion.DeepCopy()
		c.Spec.WebhookDefinitions, c.Spec.APIServiceDefinitions.Owned = nil, nil
		in.ClusterServiceVersion = c
	},
	"a certificate is issued that is not needed": func(in *csv.Input) { in.Issued = []serving.Issued{{Deployment: "cool"}} },
	"an invalid certificate is issued": func(in *csv.Input) {
		in.Serving.Secrets.Items = nil
		in.Issued = []serving.Issued{{Deployment: "cool", Certificate: serving.Certificate{CertPEM: []byte("x")}}}
	},
}

type mutating = admissionregistrationv1.MutatingWebhookConfiguration

// TestProblemsOfWebhooksAndAPIServices checks which phase follows from each problem, for a CSV that is Succeeded,
// Failed, Installing or InstallReady.
func TestProblemsOfWebhooksAndAPIServices(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	well := calledIn(t, cluster)
	require.Equal(t, succeeded, well.ClusterServiceVersion.Status.Phase, well.ClusterServiceVersion.Status.Message)
	require.Empty(t, reconciled(t, well).Actions)
	var got []string
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		for _, phase := range []phaseName{succeeded, failed, installing, installReady} {
			in := well
			in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
			hold(in.ClusterServiceVersion, phase, "InstallSucceeded", "words", 0)
			in.ClusterServiceVersion.Status.LastTransitionTime = new(metav1.NewTime(in.Now))
			faults[name](&in)
			a := assess(t, in)
			got = append(
				got,
				name+": "+string(phase)+" -> "+string(a.Phase)+"/"+string(a.Reason)+" "+a.Message+" ["+a.Rule+"] "+a.RequeueAfter.String(),
			)
		}
	}
	const file = "testdata/called.golden"
	if os.Getenv(scenario.UpdateVariable) == "1" {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Split(strings.TrimSpace(string(want)), "\n"), got)
}

// spoiled draws an Input with a phase and some faults.
func spoiled(t *rapid.T, in csv.Input) csv.Input {
	names := slices.Sorted(maps.Keys(faults))
	in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
	hold(in.ClusterServiceVersion, phaseOf(t, "phase"), "InstallSucceeded", "words", 0)
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(names)-1), 0, 3).Draw(t, "faults") {
		func() {
			defer func() { _ = recover() }() // a fault of what another one took away
			faults[names[i]](&in)
		}()
	}
	return in
}

// TestInspectedMemoryChangesNoDecision checks that Input.Inspected of any earlier call does not change the decision.
func TestInspectedMemoryChangesNoDecision(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	well := calledIn(t, cluster)
	times := []time.Duration{0, time.Second, serving.Validity - serving.RenewBefore, serving.Validity}
	recalled := 0
	rapid.Check(t, func(t *rapid.T) {
		earlier, in := spoiled(t, well), spoiled(t, well)
		earlier.Now = well.Now.Add(rapid.SampledFrom(times).Draw(t, "earlier"))
		in.Now = well.Now.Add(rapid.SampledFrom(times).Draw(t, "now") + time.Duration(rapid.IntRange(-1, 1).Draw(t, "beside"))*time.Second)
		want, err := outcome(in)
		require.NoError(t, err)
		in.Inspected = reconciled(t, earlier).Inspected
		if in.Inspected != nil {
			recalled++
		}
		got, err := outcome(in)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
	})
	require.NotZero(t, recalled)
}

// TestLawsWithProblemsOfWebhooksAndAPIServices checks the laws with several problems at once, in each phase.
func TestLawsWithProblemsOfWebhooksAndAPIServices(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	well := calledIn(t, cluster)
	rapid.Check(t, func(t *rapid.T) {
		in := spoiled(t, well)
		// Not shift-invariant: certificates tell the time.
		require.NoError(
			t,
			errors.Join(invariant.Deterministic(reconcile, in), invariant.Pure(reconcile, in), invariant.DeadlineSound(reconcile, in)),
		)
		require.NoError(t, invariant.CheckpointSound(csv.Reconcile, in))
		require.NoError(t, errors.Join(invariant.Separate(reconciled(t, in).Result), invariant.Recordable(reconciled(t, in).Result)))
	})
}

// TestObjectsThatTheSpecNoLongerDescribesAreDeleted checks that an edit of the spec deletes the webhooks and
// APIServices that it no longer describes.
func TestObjectsThatTheSpecNoLongerDescribesAreDeleted(t *testing.T) {
	cluster, driver := install(t, called("cool.v1", 1))
	require.NoError(t, fake.Edit(cluster, "ns", "cool.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.WebhookDefinitions, c.Spec.APIServiceDefinitions.Owned = nil, nil
	}))
	require.NoError(t, driver.Settle(context.Background()))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	require.Equal(t, succeeded, live.Status.Phase, "%s\n%s", live.Status.Message, controller.Format(driver.Events))
	require.Nil(t, live.Status.CertsRotateAt)
	require.Nil(t, live.Status.CertsLastUpdated)
	for _, o := range cluster.Objects() {
		require.NotContains(t, []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService"}, olmcore.KeyOf(o).Kind)
	}
	crd := fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", "cools.example.com")
	require.Equal(t, apiextensionsv1.NoneConverter, crd.Spec.Conversion.Strategy, "its operator has no certificate any more")
	require.NotContains(t, crd.Annotations, "olmcore/converted-by")
}

// TestDeletedServingObjectsAreCreatedAgain deletes each object that belongs to the operator. It is created again, and
// then the API server can call the operator.
func TestDeletedServingObjectsAreCreatedAgain(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	mended := 0
	for _, o := range cluster.Objects() {
		owner, labelled := olmcore.OwnerOf(o.GetLabels())
		name := "cool.v1"
		if strings.HasPrefix(o.GetName(), name+"-") {
			continue // an InstallPlan makes it
		}
		if !olmcore.OwnedBy(o, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", name).UID) && !(labelled && owner.Name == name) {
			continue
		}
		mended++
		t.Run(olmcore.KeyOf(o).String(), func(t *testing.T) {
			cluster, driver := install(t, called("cool.v1", 1))
			require.NoError(t, cluster.Serving().Check())
			ref := refOf(o)
			ref.UID = "" // each cluster is another one
			require.NoError(t, cluster.Delete(ref))
			require.NoError(t, driver.Settle(context.Background()))
			cluster.Advance(11*time.Second + olmcore.ClockTolerance) // while the API server learns of the new authority
			require.NoError(t, driver.Settle(context.Background()))
			live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
			require.Equal(t, succeeded, live.Status.Phase, "%s\n%s", live.Status.Message, controller.Format(driver.Events))
			require.NoError(t, cluster.Serving().Check())
		})
	}
	require.GreaterOrEqual(t, mended, 10)
}

// TestInstallationTimesOutWhilePodsStart checks that starting Pods, which excuse an unavailable APIService, do not
// prolong the installation.
func TestInstallationTimesOutWhilePodsStart(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	for age, want := range map[time.Duration]string{time.Minute: "words", 5 * time.Minute: "install timeout"} {
		in := calledIn(t, cluster)
		in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
		hold(in.ClusterServiceVersion, installing, "InstallSucceeded", "words", 0)
		in.ClusterServiceVersion.Status.LastTransitionTime = new(metav1.NewTime(in.Now.Add(-age)))
		faults["its Pods are starting"](&in)
		require.Equal(t, want, assess(t, in).Message)
	}
}

// TestFailedInstallationUpdatesCABundles checks that clients keep trusting the operator while a failed installation
// waits for its next attempt.
func TestFailedInstallationUpdatesCABundles(t *testing.T) {
	cluster, _ := install(t, called("cool.v1", 1))
	in := calledIn(t, cluster)
	in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
	hold(in.ClusterServiceVersion, failed, "InstallComponentFailed", "words", 0)
	in.ClusterServiceVersion.Status.LastTransitionTime = new(metav1.NewTime(in.Now))
	faults["the APIService trusts nothing"](&in)
	out := reconciled(t, in)
	require.Equal(t, []string{"update APIService v1.hot.example.com"}, csvtest.Writes(out.Actions))
}
