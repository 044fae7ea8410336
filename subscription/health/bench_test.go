// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/sample"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/health"
)

// BenchmarkOf measures a namespace of n Subscriptions, each with its version, a Deployment and a Pod; every tenth
// version waits for a Pod whose image cannot be pulled.
func BenchmarkOf(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := crowd(n)
			answers, err := health.Assess(in)
			require.NoError(b, err)
			require.Len(b, answers, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := health.Assess(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/subscription")
		})
	}
}

func crowd(n int) health.Input {
	var objects []olmcore.Object
	in := health.Input{Deployments: olmcore.Found[*appsv1.Deployment](), Pods: olmcore.Found[*corev1.Pod]()}
	for i := range n {
		name := fmt.Sprint("op", i)
		phase := v1alpha1.CSVPhaseSucceeded
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name, Labels: map[string]string{"app": name}}}
		if i%10 == 9 {
			phase = v1alpha1.CSVPhaseInstalling
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		}
		selector := &metav1.LabelSelector{MatchLabels: pod.Labels}
		objects = append(objects, sample.Sub(name, sample.Follows("", name+".v1"), sample.Installed), sample.CSV(name+".v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.Status.Phase = phase
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: name, Spec: appsv1.DeploymentSpec{Selector: selector}}}
		}))
		in.Deployments.Items = append(in.Deployments.Items, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name}, Spec: appsv1.DeploymentSpec{Selector: selector}})
		in.Pods.Items = append(in.Pods.Items, pod)
	}
	in.Input = sample.Input(objects...)
	return in
}
