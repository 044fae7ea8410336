// SPDX-License-Identifier: Apache-2.0

package olmgitops_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/gitops/olmgitops"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// What would be written becomes files, for review and for the tool that applies such folders.
func ExampleNew() {
	// Use decode.Read for the output of kubectl. Everything means that kinds without objects were read, too.
	observed, err := olmcore.NewSnapshot([]olmcore.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}},
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community", UID: "1", ResourceVersion: "2"},
			Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:v1"},
		},
	}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	plan := olmgitops.New(observed)
	options := controllers.Options{Live: true, Issuer: controllers.NoIssuer{}}
	if err := controller.Pass(context.Background(), controllers.New(&options).Runners(observed, plan), time.Now); err != nil {
		panic(err)
	}
	folder, err := os.MkdirTemp("", "plan")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := plan.Write(folder); err != nil {
		panic(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "apply", "olm", "*"))
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		fmt.Println(filepath.Base(file))
	}
	// Output:
	// networkpolicy.networking.k8s.io_community-grpc-server.yaml
	// networkpolicy.networking.k8s.io_community-unpack-bundles.yaml
	// pod_community-tmsnkrewe4.yaml
	// service_community.yaml
	// serviceaccount_community.yaml
}
