// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
)

// A cluster in memory, served to any client of Kubernetes.
func ExampleNew() {
	c := fake.NewCluster(time.Now())
	if err := c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}}); err != nil {
		panic(err)
	}
	front := httptest.NewServer(apiserver.New(c)) // its URL goes into a rest.Config, or apiserver.Kubeconfig(front.URL) into a file
	defer front.Close()
	answer, err := http.Get(front.URL + "/api/v1/namespaces/ops")
	if err != nil {
		panic(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var namespace corev1.Namespace
	if err := json.NewDecoder(answer.Body).Decode(&namespace); err != nil {
		panic(err)
	}
	fmt.Println(answer.Status, namespace.Kind, namespace.Name)
	// Output:
	// 200 OK Namespace ops
}
