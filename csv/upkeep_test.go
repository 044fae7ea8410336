// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// waitingSuccessor returns version 2 of the operator that the API server calls. It requires an API that does not exist.
func waitingSuccessor() *v1alpha1.ClusterServiceVersion {
	c := called("cool.v2", 2)
	c.Spec.Replaces = "cool.v1"
	c.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "warms.example.com", Version: "v1", Kind: "Warm"}}
	return c
}

func phaseIn(cluster *fake.Cluster, name string) phaseName {
	if c := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", name); c != nil {
		return c.Status.Phase
	}
	return "gone"
}

// TestReplacingVersionRenewsItsCertificates checks that a version that waits for its successor serves longer than its
// first certificate is valid, and that the successor takes over afterwards.
func TestReplacingVersionRenewsItsCertificates(t *testing.T) {
	refuse := func(cluster *fake.Cluster) { refuseDeployment(cluster, olmcore.VerbCreate, "cool-next") }
	deleteSecret := func(cluster *fake.Cluster) {
		_ = cluster.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "cool-service-cert"})
	}
	renamedSuccessor := renamed()
	renamedSuccessor.Spec.CustomResourceDefinitions.Required = waitingSuccessor().Spec.CustomResourceDefinitions.Required
	for name, row := range map[string]struct {
		successor *v1alpha1.ClusterServiceVersion
		// before changes the cluster before the successor exists, later once it waits.
		before, later func(*fake.Cluster)
	}{
		"its successor lacks a requirement":                            {successor: waitingSuccessor()},
		"its successor lacks a requirement and has another Deployment": {successor: renamedSuccessor},
		"the Deployment of its successor is refused":                   {successor: renamed(), before: refuse},
		"its Secret is deleted":                                        {successor: waitingSuccessor(), later: deleteSecret},
		"its Secret is deleted while its successor fails": {
			successor: renamed(), before: refuse, later: deleteSecret,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			cluster, driver := install(t, called("cool.v1", 1))
			if row.before != nil {
				row.before(cluster)
			}
			create(t, cluster, row.successor.DeepCopy())
			require.NoError(t, driver.RunFor(ctx, 10*time.Minute))
			if row.later != nil {
				row.later(cluster)
				cluster.Advance(time.Minute)
				require.NoError(t, driver.RunFor(ctx, 10*time.Minute))
				require.NoError(t, cluster.Serving().Check())
			}
			servesFor(t, cluster, driver)
			require.Equal(t, replacing, phaseIn(cluster, "cool.v1"))
			first := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
			require.True(t, first.Status.CertsRotateAt.After(cluster.Now()))
			cluster.Authorize = nil
			require.NoError(t, cluster.Create(definition("example.com", "Warm", "warms", "v1")))
			for range 40 {
				require.NoError(t, driver.RunFor(ctx, time.Minute))
				require.NoError(t, cluster.Serving().Check())
			}
			require.Equal(t, succeeded, phaseIn(cluster, "cool.v2"), "%s", controller.Format(driver.Events))
			require.Equal(t, phaseName("gone"), phaseIn(cluster, "cool.v1"))
		})
	}
}

// create creates a version and what its InstallPlan would have created for it.
func create(t *testing.T, cluster *fake.Cluster, c *v1alpha1.ClusterServiceVersion) {
	t.Helper()
	require.NoError(t, cluster.Create(c))
	for _, o := range needs(c) {
		if err := cluster.Create(o); !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
}

// TestSuccessorThatOwnsTheSecretRenewsItsCertificate checks that a Pending version renews the certificate of a Secret
// that it took over before it lost a requirement. The previous version still owns the Deployment, and replaces its
// Pods.
func TestSuccessorThatOwnsTheSecretRenewsItsCertificate(t *testing.T) {
	cluster, driver := install(t, called("cool.v1", 1))
	refuseDeployment(cluster, olmcore.VerbUpdate, "cool")
	require.NoError(t, cluster.Create(definition("example.com", "Warm", "warms", "v1")))
	create(t, cluster, waitingSuccessor())
	require.NoError(t, driver.RunFor(context.Background(), 10*time.Minute))
	require.Equal(t, "cool.v2", fake.Find[*corev1.Secret](cluster, "ns", "cool-service-cert").OwnerReferences[0].Name)
	require.NoError(t, cluster.Delete(warms))
	cluster.Authorize = nil
	servesFor(t, cluster, driver)
	require.Equal(t, pending, phaseIn(cluster, "cool.v2"))
	require.Equal(t, "cool.v1", fake.Find[*appsv1.Deployment](cluster, "ns", "cool").OwnerReferences[0].Name)
}

// TestPendingVersionRenewsItsCertificates checks that a version that ran, and lost a requirement, keeps serving.
func TestPendingVersionRenewsItsCertificates(t *testing.T) {
	cluster, driver := install(t, called("cool.v1", 1))
	require.NoError(t, fake.Edit(cluster, "ns", "cool.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Required = waitingSuccessor().Spec.CustomResourceDefinitions.Required
	}))
	servesFor(t, cluster, driver)
	require.Equal(t, pending, phaseIn(cluster, "cool.v1"))
}

// TestReplacingVersionKeepsItsTargetNamespaces checks that the annotation of a Replacing version contains the
// namespaces that its Pods watch. Its Deployments are not updated, so its annotations do not change with the
// OperatorGroup either.
func TestReplacingVersionKeepsItsTargetNamespaces(t *testing.T) {
	in := input(replacing, "BeingReplaced", "being replaced by csv: cool.v2")
	successorOf(&in, pending)
	g := in.OperatorGroups.Items[0].DeepCopy()
	g.Spec.TargetNamespaces, g.Status.Namespaces = []string{"other"}, []string{"other"}
	in.OperatorGroups.Items = []*operatorsv1.OperatorGroup{g}
	require.Empty(t, reconciled(t, in).Actions)
}

// TestAdoptingAStuckUpgradeWritesNothing checks that nothing is written when the library takes over a cluster in which
// an upgrade is stuck.
func TestAdoptingAStuckUpgradeWritesNothing(t *testing.T) {
	cluster, driver := install(t, called("cool.v1", 1))
	create(t, cluster, waitingSuccessor())
	require.NoError(t, driver.RunFor(context.Background(), 10*time.Minute))
	var objects []olmcore.Object
	for _, o := range cluster.Objects() {
		objects = append(objects, csvtest.AsOLM(o))
	}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	for name, phase := range map[string]phaseName{"cool.v1": replacing, "cool.v2": pending} {
		in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: name}, csv.Config{})
		require.NoError(t, err)
		in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
		require.Equal(t, phase, in.ClusterServiceVersion.Status.Phase)
		out := reconciled(t, in)
		require.Empty(t, out.Actions, "%s", invariant.Describe(out.Result))
		require.Empty(t, out.Certificates)
	}
}

// TestWaitingVersionIsNotUpdated checks what Reconcile does not change of a Replacing version with valid certificates.
func TestWaitingVersionIsNotUpdated(t *testing.T) {
	cluster, driver := install(t, called("cool.v1", 1))
	create(t, cluster, waitingSuccessor())
	require.NoError(t, driver.RunFor(context.Background(), 10*time.Minute))
	for name, change := range map[string]func(in *csv.Input){
		"the namespaces of its webhooks if its OperatorGroup changes": func(in *csv.Input) {
			changed(&in.OperatorGroups, func(g *operatorsv1.OperatorGroup) {
				g.UID, g.Spec.TargetNamespaces, g.Status.Namespaces = "created again", []string{"other"}, []string{"other"}
			})
		},
		"webhooks and APIServices that its spec no longer describes": func(in *csv.Input) {
			c := in.ClusterServiceVersion.DeepCopy()
			c.Spec.WebhookDefinitions, c.Spec.APIServiceDefinitions.Owned = c.Spec.WebhookDefinitions[:1], nil
			in.ClusterServiceVersion = c
		},
		"a Deployment that does not mount the Secret": func(in *csv.Input) {
			in.Serving.Secrets = olmcore.Found[*corev1.Secret]()
			changed(&in.Deployments, func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Volumes, d.Spec.Template.Annotations = nil, map[string]string{}
			})
		},
		"a Deployment whose certificate the stale Secret does not contain yet": func(in *csv.Input) {
			changed(&in.Deployments, func(d *appsv1.Deployment) { d.Spec.Template.Annotations["olmcahash"] = "later" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := calledIn(t, cluster)
			require.Equal(t, replacing, in.ClusterServiceVersion.Status.Phase)
			change(&in)
			out := reconciled(t, in)
			require.Empty(t, out.Actions, "%s", invariant.Describe(out.Result))
			require.Empty(t, out.Certificates)
		})
	}
}

// TestCertificatesAreNotRenewedFromIncompleteLists checks that nothing is written for a Replacing version from lists
// that were not read, and nothing without a single OperatorGroup whose account is known.
func TestCertificatesAreNotRenewedFromIncompleteLists(t *testing.T) {
	cluster, driver := install(t, called("cool.v1", 1))
	create(t, cluster, waitingSuccessor())
	require.NoError(t, driver.RunFor(context.Background(), 10*time.Minute))
	due := calledIn(t, cluster)
	due.Now = due.Now.Add(serving.Validity - time.Hour)
	require.Len(t, reconciled(t, due).Certificates, 1)
	for name, change := range map[string]func(in *csv.Input){
		"OperatorGroups":                func(in *csv.Input) { unread(&in.OperatorGroups) },
		"Deployments":                   func(in *csv.Input) { unread(&in.Deployments) },
		"CustomResourceDefinitions":     func(in *csv.Input) { unread(&in.CustomResourceDefinitions) },
		"APIServices":                   func(in *csv.Input) { unread(&in.APIServices) },
		"Secrets":                       func(in *csv.Input) { unread(&in.Serving.Secrets) },
		"MutatingWebhookConfigurations": func(in *csv.Input) { unread(&in.Serving.MutatingWebhookConfigurations) },
		"no OperatorGroup":              func(in *csv.Input) { in.OperatorGroups.Items = nil },
		"an account that does not exist": func(in *csv.Input) {
			g := in.OperatorGroups.Items[0].DeepCopy()
			g.Spec.ServiceAccountName = "installer"
			in.OperatorGroups.Items = []*operatorsv1.OperatorGroup{g}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := due
			change(&in)
			out := reconciled(t, in)
			require.Empty(t, out.Actions)
			require.Empty(t, out.Certificates)
			require.Equal(t, replacing, assess(t, in).Phase)
		})
	}
}

// TestRenewalThatCannotEndIsNotRepeatedAtOnce checks that a Replacing version does not reconcile every second while the
// API server rejects updates of the caBundles of its clients.
func TestRenewalThatCannotEndIsNotRepeatedAtOnce(t *testing.T) {
	cluster, driver := install(t, called("cool.v1", 1))
	create(t, cluster, waitingSuccessor())
	require.NoError(t, driver.RunFor(context.Background(), time.Hour))
	cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if verb == olmcore.VerbUpdate && target.Kind == "APIService" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "apiservices"}, target.Name, errors.New("a policy says no"))
		}
		return nil
	}
	cluster.Advance(serving.Validity - serving.RenewBefore)
	require.NoError(t, driver.RunFor(context.Background(), 10*time.Minute))
	in := calledIn(t, cluster)
	require.NotEmpty(t, in.Serving.Secrets.Items[0].Data["next.tls.crt"])
	require.Greater(t, reconciled(t, in).RequeueAfter, 30*time.Second)
}

// refuseDeployment makes the API server refuse one kind of write of a Deployment.
func refuseDeployment(cluster *fake.Cluster, verb olmcore.Verb, name string) {
	cluster.Authorize = func(_ *corev1.ObjectReference, asked olmcore.Verb, target olmcore.Ref) error {
		if asked == verb && target.Kind == "Deployment" && target.Name == name {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, name, errors.New("a policy says no"))
		}
		return nil
	}
}

// servesFor advances the clock by nearly twice the validity of a certificate, and requires that the API server can
// always call the operator.
func servesFor(t *testing.T, cluster *fake.Cluster, driver *fake.Driver) {
	t.Helper()
	for range 2 {
		cluster.Advance(serving.Validity - 2*serving.RenewBefore)
		for range 9 {
			cluster.Advance(4 * time.Hour)
			require.NoError(t, driver.RunFor(context.Background(), 5*time.Minute))
			require.NoError(t, cluster.Serving().Check())
		}
	}
}

// TestManagersWithDifferentClocksAgreeOnCertificates runs two managers whose clocks differ, while an upgrade is stuck
// in any phase and certificates expire. While time stands still, both stop writing. The API server can call the
// operator at any time.
func TestManagersWithDifferentClocksAgreeOnCertificates(t *testing.T) {
	ctx := context.Background()
	renewals, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newUpgrade(t)
		w.bring(t)
		clocks := invariant.TwoClocks{
			Cluster: w.cluster, Rounds: clockRounds, Ahead: rapid.SampledFrom(invariant.ClockPairs()).Draw(t, "clocks"),
			Managers: [2][]controller.Controller{controllers(csv.Config{}), controllers(csv.Config{})},
		}
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			w.step(t)
			for range rapid.IntRange(1, 2).Draw(t, "pauses") {
				before := w.certificate()
				require.NoError(t, clocks.Agree(ctx), "%v", phases(csvs(w.cluster)))
				require.NoError(t, w.cluster.RunFor(rapid.SampledFrom(clockPauses).Draw(t, "pause")))
				require.NoError(t, clocks.RunFor(ctx, pastGrace, 18*time.Second))
				if w.certificate() != before {
					renewals++
					if phaseIn(w.cluster, "cool.v1") == replacing {
						kept++
					}
				}
				require.NoError(t, w.cluster.Serving().Check(), "%v", phases(csvs(w.cluster)))
			}
		}
	})
	t.Logf("%d certificates were renewed, %d of them while the first version was Replacing", renewals, kept)
	require.NotZero(t, kept)
}

// upgrade is a cluster in which the first version of an operator is installed that the API server calls.
type upgrade struct {
	cluster *fake.Cluster
	// refused is the Deployment whose writes the API server refuses, empty for none.
	refused string
}

func newUpgrade(t *rapid.T) *upgrade {
	cluster, driver := newWorld(csv.Config{})
	first := called("cool.v1", 1)
	crd := definitionsFor(first)[0]
	serve(crd, "v2")
	require.NoError(t, cluster.Create(crd, definition("example.com", "Warm", "warms", "v1")))
	require.NoError(t, cluster.Create(needs(first)...))
	require.NoError(t, cluster.Create(groupFor(first), first))
	require.NoError(t, driver.RunFor(context.Background(), 5*time.Minute))
	w := &upgrade{cluster: cluster}
	cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if target.Kind == "Deployment" && target.Name == w.refused && verb != olmcore.VerbDelete {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, target.Name, errors.New("a policy says no"))
		}
		return nil
	}
	return w
}

func (w *upgrade) certificate() string {
	if s := fake.Find[*corev1.Secret](w.cluster, "ns", "cool-service-cert"); s != nil {
		return string(s.Data["tls.crt"])
	}
	return ""
}

// bring creates the successor, with the same Deployment or another one, and often without what it requires.
func (w *upgrade) bring(t *rapid.T) {
	next := renamed()
	if rapid.Bool().Draw(t, "same") {
		next = waitingSuccessor()
	}
	next.Spec.CustomResourceDefinitions.Required = waitingSuccessor().Spec.CustomResourceDefinitions.Required
	require.NoError(t, w.cluster.Create(next))
	for _, o := range needs(next) {
		require.NoError(t, ignoreExisting(w.cluster.Create(o)))
	}
	w.refused = rapid.SampledFrom([]string{"", "cool", "cool-next"}).Draw(t, "refused")
	if rapid.Bool().Draw(t, "unmet") {
		_ = w.cluster.Delete(warms)
	}
}

var warms = olmcore.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "warms.example.com"}

// step changes something that upgrades depend on, or lets the time pass until a certificate is due.
func (w *upgrade) step(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0:
		if c := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "ns", "cool.v2"); c != nil && c.Status.Phase != succeeded {
			require.NoError(t, w.cluster.Delete(refOf(c)))
		} else if c == nil {
			w.bring(t)
		}
	case 1: // what it requires is deleted, or comes back
		if err := w.cluster.Create(definition("example.com", "Warm", "warms", "v1")); err != nil {
			require.NoError(t, w.cluster.Delete(warms))
		}
	case 2:
		w.refused = rapid.SampledFrom([]string{"", "cool", "cool-next"}).Draw(t, "refused")
	default: // the certificate is about to expire, and the Deployment may be rolled out
		if w.refused == "cool" {
			w.refused = ""
		}
		at := w.renewAt().Add(rapid.SampledFrom([]time.Duration{-2 * time.Minute, -30 * time.Second, 0, time.Minute, time.Hour}).Draw(t, "at"))
		w.cluster.Advance(at.Sub(w.cluster.Now()))
	}
}

// renewAt returns when the first of the certificates in use must be renewed.
func (w *upgrade) renewAt() time.Time {
	var first time.Time
	for _, name := range []string{"cool-service-cert", "cool-next-service-cert"} {
		s := fake.Find[*corev1.Secret](w.cluster, "ns", name)
		if s == nil {
			continue
		}
		hosts := serving.Hosts(strings.TrimSuffix(name, "-cert"), "ns")
		at := (*serving.Memory)(nil).Next().Inspect(serving.FromData(s.Data), hosts, w.cluster.Now()).RenewAt
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
