// SPDX-License-Identifier: Apache-2.0

// Command olm runs the library on the cluster that KUBECONFIG or --kubeconfig names, or in which it runs as a Pod.
package main

import "github.com/olmcore/olm/examples/controllerruntime/olmcommand"

func main() { olmcommand.Main() }
