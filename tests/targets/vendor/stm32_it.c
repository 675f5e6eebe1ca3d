/* SPDX-License-Identifier: 0BSD
   The file of the handlers, as STM32CubeMX writes one. */
#include "stm32l4xx_hal.h"
#include "port/stm32_flash.h"

void NMI_Handler(void);

void NMI_Handler(void)
{
    if (stm32_flash_nmi())
        return;
    for (;;)
        ;
}
