// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// rejecting makes the API server answer every write of a kind with an error.
func rejecting(kind string, err func(target olmcore.Ref) error) func(*fake.Cluster) {
	return func(c *fake.Cluster) {
		c.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
			if target.Kind != kind || verb == olmcore.VerbDelete {
				return nil
			}
			return err(target)
		}
	}
}

func invalid(target olmcore.Ref) error {
	return apierrors.NewInvalid(target.GVK().GroupKind(), target.Name, nil)
}

func forbidden(text string) func(olmcore.Ref) error {
	return func(target olmcore.Ref) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: target.Kind}, target.Name, errors.New(text))
	}
}

// TestAnInstallationThatCannotSucceedRests: whatever makes an installation fail for good, the ClusterServiceVersion
// stays Failed, and neither it nor its copies, its Subscription and its Operator are written again. Once the cause is
// gone the version is Succeeded within the backoff.
func TestAnInstallationThatCannotSucceedRests(t *testing.T) {
	deployment := func(change func(d *v1alpha1.StrategyDeploymentSpec)) func(*v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) {
			change(&c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0])
		}
	}
	nothing := func(*fake.Cluster) {}
	users := func(o olmcore.Object) func(*fake.Cluster) {
		return func(c *fake.Cluster) {
			if err := c.Create(o); err != nil {
				panic(err)
			}
		}
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "delta-manager-service"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
	alpha := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alpha"}, Spec: usersDeployment()}
	denied := forbidden(`admission webhook "x" denied the request`)
	for name, c := range map[string]struct {
		pkg     string
		cluster func(*fake.Cluster)
		csv     func(*v1alpha1.ClusterServiceVersion)
		reason  v1alpha1.ConditionReason
		repair  func(*fake.Cluster) error
	}{
		"the name of a Deployment is no DNS name": {"alpha", nothing, deployment(func(d *v1alpha1.StrategyDeploymentSpec) {
			d.Name = "Bad_Name"
		}), "InstallComponentFailed", nil},
		"the selector of a Deployment does not match": {"alpha", nothing, deployment(func(d *v1alpha1.StrategyDeploymentSpec) {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"not": "there"}}
		}), "InvalidInstallStrategy", nil},
		"an environment variable has no name": {"alpha", nothing, deployment(func(d *v1alpha1.StrategyDeploymentSpec) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Value: "x"}}
		}), "InstallComponentFailed", nil},
		"a webhook denies the Deployment": {"alpha", rejecting("Deployment", denied), nil, "InstallComponentFailed", nil},
		"a quota forbids the Deployment":  {"alpha", rejecting("Deployment", forbidden("exceeded quota")), nil, "InstallComponentFailedNoRetry", nil},
		"a user has the Service": {"delta", users(service), nil, "InstallComponentFailed", func(c *fake.Cluster) error {
			return c.Delete(olmcore.RefOf(fake.Find[*corev1.Service](c, namespace, "delta-manager-service")))
		}},
		"a Service is invalid": {"delta", rejecting("Service", invalid), nil, "InstallComponentFailed", nil},
		"a Secret is invalid":  {"delta", rejecting("Secret", invalid), nil, "InstallComponentFailed", nil},
		"the Role of a certificate is forbidden": {"delta", rejecting("RoleBinding", func(target olmcore.Ref) error {
			if !strings.HasSuffix(target.Name, "-cert") {
				return nil
			}
			return forbidden("no")(target)
		}), nil, "InstallComponentFailed", nil},
		"the webhook configuration is invalid":  {"delta", rejecting("ValidatingWebhookConfiguration", invalid), nil, "InstallComponentFailed", nil},
		"the webhook configuration is denied":   {"delta", rejecting("ValidatingWebhookConfiguration", denied), nil, "InstallComponentFailed", nil},
		"the APIService is invalid":             {"epsilon", rejecting("APIService", invalid), nil, "InstallComponentFailed", nil},
		"the Deployment of a user has the name": {"alpha", users(alpha), nil, "OwnerConflict", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			require.NoError(t, fake.Edit(w.cluster, namespace, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil }))
			for i := range 3 {
				require.NoError(t, w.cluster.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}))
			}
			w.heads[c.pkg] = 1
			objects := append([]olmcore.Object(nil), bundle(c.pkg, 1)...)
			csv := objects[0].(*v1alpha1.ClusterServiceVersion).DeepCopy()
			csv.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
			if c.csv != nil {
				c.csv(csv)
			}
			objects[0] = csv
			w.bundles = map[string][]olmcore.Object{csv.Name: objects}
			c.cluster(w.cluster)
			require.NoError(t, w.subscribe(c.pkg, v1alpha1.ApprovalAutomatic))
			w.run(t, 10*time.Minute)
			failed := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, namespace, csv.Name)
			require.NotNil(t, failed)
			require.Equal(t, v1alpha1.CSVPhaseFailed, failed.Status.Phase, failed.Status.Message)
			require.Equal(t, c.reason, failed.Status.Reason, failed.Status.Message)
			require.NotContains(t, failed.Status.Message, "attempt")
			before := w.cluster.ResourceVersion()
			w.run(t, time.Hour)
			require.Equal(t, before, w.cluster.ResourceVersion(), "nothing is written")

			w.cluster.Authorize = nil
			switch {
			case c.repair != nil:
				require.NoError(t, c.repair(w.cluster))
			case c.csv != nil:
				require.NoError(t, fake.Edit(w.cluster, namespace, csv.Name, func(v *v1alpha1.ClusterServiceVersion) {
					v.Spec.InstallStrategy = bundle(c.pkg, 1)[0].(*v1alpha1.ClusterServiceVersion).Spec.InstallStrategy
				}))
			case c.reason == "OwnerConflict":
				require.NoError(t, w.cluster.Delete(olmcore.RefOf(fake.Find[*appsv1.Deployment](w.cluster, namespace, "alpha"))))
			default: // what was invalid for another reason than its content is tried again once the version changes
				require.NoError(t, fake.Edit(w.cluster, namespace, csv.Name, func(v *v1alpha1.ClusterServiceVersion) { v.Spec.Description += "." }))
			}
			w.run(t, 11*time.Minute)
			require.Equal(t, csv.Name+" Succeeded", w.phases())
		})
	}
}

// usersDeployment is a Deployment that has nothing to do with OLM.
func usersDeployment() appsv1.DeploymentSpec {
	labels := map[string]string{"app": "users"}
	return appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}
}

// TestDependencyOfAFailedPlanIsFollowed: the API server rejects the Subscription for a dependency until its plan has
// failed, and a later plan upgrades the version that needs the dependency. Once Subscriptions are accepted, the failed
// plan creates the one that it has left. Without it the dependency could never be upgraded, and no version that needs a
// newer one could be installed.
func TestDependencyOfAFailedPlanIsFollowed(t *testing.T) {
	w := newWorld(t)
	packages := map[string]resolution.Package{}
	offer := func(betas int, needs ...int) {
		var alpha, beta []resolution.ChannelEntry
		for v := range needs {
			alpha = append(alpha, resolution.ChannelEntry{Name: csvName("alpha", v+1), SkipRange: fmt.Sprintf("<%d.0.0", v+1)})
		}
		for v := range betas {
			beta = append(beta, resolution.ChannelEntry{Name: csvName("beta", v+1), SkipRange: fmt.Sprintf("<%d.0.0", v+1)})
		}
		for i := range alpha[1:] {
			alpha[i+1].Replaces = alpha[i].Name
		}
		for i := range beta[1:] {
			beta[i+1].Replaces = beta[i].Name
		}
		packages["alpha"], packages["beta"] = packageOf("alpha", alpha...), packageOf("beta", beta...)
		for v, least := range needs {
			b := &packages["alpha"].Bundles[v]
			b.Properties = append(b.Properties, olmcore.Property{
				Type:  resolution.PropertyPackageRequired,
				Value: fmt.Appendf(nil, `{"packageName":"beta","versionRange":">=%d.0.0"}`, least),
			})
		}
		catalogs, err := catalogsOf(packages)
		require.NoError(t, err)
		catalogs.Serve(&w.olm.Options)
	}
	offer(1, 1)
	rejected := true
	w.cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if rejected && verb == olmcore.VerbCreate && target.Kind == v1alpha1.SubscriptionKind {
			return invalid(target)
		}
		return nil
	}
	require.NoError(t, w.subscribe("alpha", v1alpha1.ApprovalAutomatic))
	w.run(t, 5*time.Minute)
	require.Equal(t, "alpha.v1.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())
	offer(1, 1, 1)
	w.poke(t)
	w.run(t, 20*time.Minute)
	require.Equal(t, "alpha.v2.0.0 Succeeded, beta.v1.0.0 Succeeded", w.phases())

	rejected = false
	w.run(t, 30*time.Minute)
	subs, err := olmcore.List[*v1alpha1.Subscription](t.Context(), w.cluster, namespace, nil)
	require.NoError(t, err)
	require.Len(t, subs, 2, "the dependency has a Subscription")
	offer(2, 1, 1, 2)
	w.poke(t)
	w.run(t, 30*time.Minute)
	require.Equal(t, "alpha.v3.0.0 Succeeded, beta.v2.0.0 Succeeded", w.phases())
}
