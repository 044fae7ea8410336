// SPDX-License-Identifier: Apache-2.0

package create_test

const accountAnnotation = "olmcore/service-account"
